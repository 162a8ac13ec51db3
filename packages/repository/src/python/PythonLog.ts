/** The log of the server for the code of models: lines of its logger, with file and line, and what it prints. */
import { Context, Effect, type LogLevel as Level, Result } from "effect"
import { Unsupported } from "@nereid/core/Errors"
import { LogFilter } from "@nereid/core/internal/running/LogFilter"
import { LogSource } from "@nereid/core/internal/running/LogSource"
import type { LogLevel, ModelPorts } from "@nereid/python/internal/process/ModelPorts"

/** Logs with the loggers of this context. */
export const make = (
  context: Context.Context<never>,
  instance: string,
): Pick<ModelPorts, "log" | "logFilter" | "printed"> => {
  const run = Effect.runSyncWith(context)
  return {
    logFilter: Context.get(context, LogFilter),
    log: ({ level, message, file, line }) => {
      const logged = Effect.logWithLevel(levels[level])(message)
      run(file === "" ? logged : Effect.provideService(logged, LogSource, `${file}:${line}`))
    },
    printed: (line, stream) => run(Effect.logInfo(`${instance} ${stream}: ${line}`)),
  }
}

/** The log alone, for `auto_complete_config`, which has no other services of the server. */
export const only = (context: Context.Context<never>, instance: string): ModelPorts => ({
  ...make(context, instance),
  call: (_, responses) => {
    responses.end(new Unsupported({ message: "BLS is only supported during the 'execute' function." }))
    return () => {}
  },
  control: () => Effect.fail(new Unsupported({ message: "auto_complete_config cannot load models" })),
  metrics: () => ({ apply: () => Result.fail("auto_complete_config cannot make metrics"), release: () => {} }),
})

const levels = { INFO: "Info", WARN: "Warn", ERROR: "Error", VERBOSE: "Debug" } as const satisfies Record<
  LogLevel,
  Level.Severity
>
