/**
 * The server's log: an Effect logger with settings that can change at run time, in Triton's format (LogLine.ts) or as
 * JSON lines (JsonLine.ts).
 *
 * `Logging.layer` replaces the loggers of a whole program, models included. Without that layer, a server logs only its
 * own lines this way. If the program sets other loggers, the server keeps them and filters by the same settings.
 */
import { Context, Effect, Layer, Logger, LogLevel, Option, References, type Scope } from "effect"
import { LogFilter } from "@nereid/core/internal/running/LogFilter"
import { printJson } from "./JsonLine.ts"
import * as LogColour from "./LogColour.ts"
import * as LogLine from "./LogLine.ts"
import * as LogSettings from "./LogSettings.ts"
import * as LogSink from "./LogSink.ts"
import type { ServeError } from "../error/ServeError.ts"

/** Log settings, all optional. Default: information, warnings and errors, in the default format, to stderr. */
export type LoggingOptions = Partial<LogSettings.LogSettings>

/** Service with the log settings, which clients can read and change, and the logger that follows them. */
export class Logging extends Context.Service<
  Logging,
  {
    readonly control: LogSettings.LogControl
    readonly logger: Logger.Logger<unknown, void>
  }
>()("@nereid/server/Logging") {}

/** Fails with a ServeError if the log file cannot be written. */
const make = Effect.fnUntraced(function* (
  options: LoggingOptions,
): Effect.fn.Return<Logging["Service"], ServeError, Scope.Scope> {
  const control = LogSettings.make(options)
  const { file } = control.current()
  const sink = file === "" ? LogSink.stderr : yield* LogSink.file(file)
  const logger = Logger.make<unknown, void>((event) => {
    if (!control.isOn(event.logLevel)) return
    control.events.publish(event)
    const { format, escapeMessages } = control.current()
    if (format === "json") return sink.write(printJson(event, process.pid))
    const line = LogLine.print(event, { format, escapeMessages }, process.pid)
    sink.write(sink === LogSink.stderr ? LogColour.paint(line, event.logLevel) : line)
  })
  return Logging.of({ control, logger })
})

/** Replaces the loggers of the effects that this layer is provided to. Fails if the log file cannot be written. */
export const layer = (options: LoggingOptions = {}): Layer.Layer<Logging, ServeError> =>
  Layer.effectContext(
    Effect.map(make(options), (logging) =>
      Context.make(Logging, logging).pipe(
        Context.add(Logger.CurrentLoggers, new Set([logging.logger, Logger.tracerLogger])),
        Context.add(References.MinimumLogLevel, "Trace"),
        Context.add(LogFilter, logging.control),
      ),
    ),
  )

/** Returns the surrounding `Logging` service, or makes one from these options if there is none. */
export const current = (options: LoggingOptions) =>
  Effect.flatMap(
    Effect.serviceOption(Logging),
    Option.match({ onNone: () => make(options), onSome: (logging) => Effect.succeed(logging) }),
  )

/** Applies the log settings to the loggers of an effect. */
export const through =
  ({ control, logger }: Logging["Service"]) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      const loggers = yield* Logger.CurrentLoggers
      if (loggers.has(logger)) return yield* effect
      const minimum = yield* References.MinimumLogLevel
      const isOn = (level: LogLevel.LogLevel) =>
        control.isOn(level) && (isVerbose(level) || !LogLevel.isLessThan(level, minimum))
      const filtered = [...loggers].map((other) => {
        if (loggers.has(Logger.defaultLogger)) return other === Logger.defaultLogger ? logger : other
        return Logger.make((event) => {
          if (isOn(event.logLevel)) other.log(event)
        })
      })
      const published = Logger.make((event) => {
        if (isOn(event.logLevel)) control.events.publish(event)
      })
      // The logger of the server publishes by itself.
      const all = loggers.has(Logger.defaultLogger) ? filtered : [...filtered, published]
      return yield* effect.pipe(
        Effect.provideService(Logger.CurrentLoggers, new Set(all)),
        Effect.provideService(References.MinimumLogLevel, "Trace"),
        Effect.provideService(LogFilter, control),
      )
    })

const isVerbose = (level: LogLevel.LogLevel) => level === "Debug" || level === "Trace"
