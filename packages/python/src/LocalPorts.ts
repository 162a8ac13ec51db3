/** The services of a model that `Python.layer` provides: the log. Other models are those of a server's repository. */
import { Context, Effect, Result } from "effect"
import { Unsupported } from "@nereid/core/Errors"
import { LogFilter } from "@nereid/core/internal/running/LogFilter"
import type { LogLevel, ModelPorts } from "./process/ModelPorts.ts"

/** Logs with the logger of the fiber that builds the model. */
export const make = (model: string, context: Context.Context<never>): ModelPorts => {
  const run = Effect.runForkWith(context)
  const refusal = (what: string) =>
    new Unsupported({ message: `model '${model}' is served by Python.layer, whose code cannot ${what}` })
  return {
    logFilter: Context.get(context, LogFilter),
    log: ({ level, message, file, line }) =>
      void run(Effect.logWithLevel(levels[level])(file === "" ? message : `${file}:${line}: ${message}`)),
    printed: (line, stream) => void run(Effect.logInfo(`${model} ${stream}: ${line}`)),
    call: (_, responses) => {
      responses.end(refusal("call other models"))
      return () => {}
    },
    control: () => Effect.fail(refusal("load models")),
    metrics: () => ({ apply: () => Result.fail(refusal("make metrics").message), release: () => {} }),
  }
}

const levels = { INFO: "Info", WARN: "Warn", ERROR: "Error", VERBOSE: "Debug" } as const satisfies Record<
  LogLevel,
  string
>
