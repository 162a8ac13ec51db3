/**
 * `nereid serve [module] [--model-repository DIR]…`: serves the models of a module and of repositories until it is
 * stopped.
 */
import { Repository } from "@nereid/repository"
import { Logging, Server } from "@nereid/server"
import { StopReason } from "@nereid/server/internal/announce/StopReason"
import { flushCompileCache } from "node:module"
import { Console, Effect, Layer, Option } from "effect"
import { Argument, CliError, Command } from "effect/cli"
import { inOneLine } from "./module/Failure.ts"
import * as ForcedExit from "./ForcedExit.ts"
import * as ModelModule from "./module/ModelModule.ts"
import * as UnhandledErrors from "./UnhandledErrors.ts"
import * as StartFlags from "./StartFlags.ts"
import * as Telemetry from "./Telemetry.ts"
import * as Supervision from "./watch/Supervision.ts"
import * as Supervisor from "./watch/Supervisor.ts"
import * as Version from "./watch/Version.ts"
import * as CacheFlags from "./flags/CacheFlags.ts"
import * as LogFlags from "./flags/LogFlags.ts"
import * as RateLimitFlags from "./flags/RateLimitFlags.ts"
import * as RepositoryFlags from "./flags/RepositoryFlags.ts"
import * as ServerFlags from "./flags/ServerFlags.ts"
import * as Variables from "./flags/Variables.ts"

export const serve = Command.make(
  "serve",
  {
    module: Argument.String("module").pipe(
      Argument.withDescription(
        "TypeScript or JavaScript module that exports models and their layers; optional with --model-repository",
      ),
      Argument.optional,
    ),
    flags: ServerFlags.flags,
  },
  Effect.fnUntraced(function* ({ module: path, flags }) {
    StartFlags.resetAtLimit()
    yield* Variables.refuseUnknown
    const options = yield* ServerFlags.options(flags, process.env)
    // The OpenTelemetry mode of traces replaces the server's own tracer, which has the same variables.
    const hasTracer = options.trace?.mode !== "opentelemetry"
    const telemetry = hasTracer ? yield* Telemetry.layer(options.id ?? "nereid", process.env) : Layer.empty
    const cache = yield* CacheFlags.layer(flags.cache, process.env)
    const repository = yield* RepositoryFlags.options(flags.repository)
    if (Option.isNone(path) && repository === undefined) {
      const cause = "no models to serve: pass a module that exports models, --model-repository=DIR, or both"
      return yield* new CliError.UserError({ cause })
    }
    const warnings = ServerFlags.warnings(flags)
    for (const warning of warnings) yield* Console.error(`Warning: ${warning}`)
    if (flags.general.watch) {
      if (Option.isNone(path)) {
        return yield* new CliError.UserError({ cause: "--watch needs a module, whose files it watches" })
      }
      if (!Supervision.isSupervised()) return yield* Supervisor.run
    }
    const forcedExit = ForcedExit.install(flags.general.drainDelay + flags.general.exitTimeout)
    const module = Option.isNone(path) ? ModelModule.none : yield* ModelModule.load(path.value)
    const models = Layer.effectContext(ModelModule.build(module))
    const stored = repository === undefined ? Layer.empty : Repository.layer(repository)
    const stop = (reason: string) => {
      process.exitCode = 1
      forcedExit.stop(reason)
    }
    const served = Server.layer(module.models, {
      ...options,
      provide: models,
      routes: module.routes,
      announce: true,
      onDrainTimeout: () => void (process.exitCode = 1),
      onUnrecoverable: () => stop("because a model cannot recover"),
    }).pipe(Layer.provide(stored))
    const supervised = Supervision.isSupervised()
    const started = Layer.provideMerge(Layer.effectDiscard(Effect.sync(onStarted)), served)
    return yield* (supervised ? Layer.provideMerge(Version.ready, started) : started).pipe(
      Layer.provide(supervised ? Version.layer(forcedExit.stop) : Layer.empty),
      Layer.provide(UnhandledErrors.layer(stop)),
      Layer.provide(cache),
      Layer.provide(RateLimitFlags.layer(flags.rateLimit)),
      Layer.provide(telemetry),
      // stderr has them already.
      Layer.provide(flags.log.file === undefined ? Layer.empty : Layer.effectDiscard(logged(warnings))),
      Layer.provide(Logging.layer({ ...options.logging, ...LogFlags.environmentOptions(process.env) })),
      Layer.provide(Layer.succeed(StopReason, forcedExit.reason)),
      Layer.launch,
    )
  }, Effect.mapError(inOneLine)),
).pipe(
  Command.withDescription(
    "Serve the models of a module, of model repositories, or of both. Every flag has an environment variable, such as NEREID_HTTP_PORT for --http-port",
  ),
)

const onStarted = () => {
  StartFlags.reset()
  // Otherwise Node writes its cache of compiled modules as it exits, which a killed server does not come to.
  flushCompileCache()
}

const logged = (warnings: ReadonlyArray<string>) =>
  Effect.forEach(warnings, (warning) => Effect.logWarning(warning), { discard: true })
