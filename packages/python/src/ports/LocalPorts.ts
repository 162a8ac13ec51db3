/** Services for the code of `Python.layer`: calls of the models that the layer names, metrics and logs. */
import { Context, Effect, Metric, Result } from "effect"
import { ModelNotFound, Unsupported } from "@nereid/core/Errors"
import { LogFilter } from "@nereid/core/internal/running/LogFilter"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { LogLevel, ModelPorts } from "../process/ModelPorts.ts"
import * as MetricFamilies from "./MetricFamilies.ts"
import * as ModelCalls from "./ModelCalls.ts"

/** The model whose code uses the services. */
export interface LocalCaller extends ModelCalls.CallingModel {
  readonly model: string
  /** Models that its code calls. */
  readonly calls: ReadonlyArray<RunningModel>
}

/** Logs with the logger of the fiber that builds the model. */
export const make = (caller: LocalCaller, context: Context.Context<never>): ModelPorts => {
  const { model } = caller
  const run = Effect.runForkWith(context)
  const find = finder(caller)
  const registry = Context.get(context, Metric.MetricRegistry)
  return {
    logFilter: Context.get(context, LogFilter),
    log: ({ level, message, file, line }) =>
      void run(Effect.logWithLevel(levels[level])(file === "" ? message : `${file}:${line}: ${message}`)),
    printed: (line, stream) => void run(Effect.logInfo(`${model} ${stream}: ${line}`)),
    call: ModelCalls.make(find, caller, context),
    control: (control) =>
      control._tag === "IsReady"
        ? Effect.flatMap(Effect.fromResult(find(control.model, control.version)), ({ life }) => life.probe)
        : Effect.fail(
            new Unsupported({ message: `model '${model}' is served by Python.layer, whose code cannot load models` }),
          ),
    metrics: () => MetricFamilies.make(registry),
  }
}

const finder =
  ({ model, calls, cycles }: LocalCaller): ModelCalls.FindModel =>
  (name, version) => {
    const unknown = `Request for unknown model: '${name}'`
    const found = calls.find(({ description }) => description.name === name)
    if (found === undefined) {
      const message = `${unknown} is not among the \`calls\` of the Python.layer of model '${model}'`
      return Result.fail(new ModelNotFound({ message }))
    }
    // One that was replaced has a successor.
    if (version === "" || version === found.description.version) return Result.succeed(found.reachedBy(cycles))
    return Result.fail(new ModelNotFound({ message: `${unknown} version ${version} is not found` }))
  }

const levels = { INFO: "Info", WARN: "Warn", ERROR: "Error", VERBOSE: "Debug" } as const satisfies Record<
  LogLevel,
  string
>
