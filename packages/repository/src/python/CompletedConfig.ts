/**
 * Completes the configuration of a model in Python by its `auto_complete_config`, in a process that ends with it. The
 * checks of a configuration follow, as for any other one.
 */
import { create } from "@bufbuild/protobuf"
import { Effect, Result } from "effect"
import * as MessageJson from "@nereid/core/internal/codec/protobuf/MessageJson"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import * as Files from "@nereid/onnx/internal/file/Files"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import * as AutoComplete from "@nereid/python/internal/process/AutoComplete"
import * as PythonInstances from "@nereid/python/internal/process/PythonInstances"
import * as ConfigJson from "../config/ConfigJson.ts"
import { failure, type LoadFailure } from "../directory/LoadFailure.ts"
import type { CompletePython, VersionFiles } from "../plan/VersionPlan.ts"
import * as PythonLog from "./PythonLog.ts"
import type { PythonOptions } from "../plan/PythonServer.ts"
import * as PythonSource from "./PythonSource.ts"

/** Results that are kept, so that a load of unchanged files imports none of them. */
const maxKept = 1000

/** Completes configurations, each once for the same files. */
export const make = (options: PythonOptions): CompletePython => {
  const kept = new Map<string, ModelConfig>()
  return Effect.fn("CompletedConfig.make")(function* (files, path, config) {
    const key = JSON.stringify([files.folder, files.file, files.stamp, text(config)])
    const before = kept.get(key)
    if (before !== undefined) return before
    const completed = yield* complete(files, path, config, options)
    if (kept.size >= maxKept) kept.clear()
    kept.set(key, completed)
    return completed
  })
}

/** The configuration as JSON, as `initialize` and the config endpoint have it. */
export const text = (config: ModelConfig): string => JSON.stringify(MessageJson.print(ModelConfigSchema, config))

const complete = Effect.fnUntraced(function* (
  files: VersionFiles,
  path: string,
  config: ModelConfig,
  options: PythonOptions,
): Effect.fn.Return<ModelConfig, LoadFailure> {
  const source = yield* PythonSource.make(files, path, config, options)
  const bytes = yield* Effect.mapError(Files.read(files.file, maxFileBytes), ({ message }) =>
    failure(`cannot read ${files.file}: ${message}`),
  )
  if (!mayComplete(new TextDecoder().decode(bytes))) return config
  const { name } = config
  const instance = { name: `${name}_0_0`, kind: "CPU", gpu: undefined } as const
  const completed = yield* AutoComplete.run({
    ...source,
    name: instance.name,
    args: PythonInstances.argumentsOf(
      { model: name, version: String(files.version), config: text(config), source: source.source },
      instance,
    ),
    signature: { inputs: [], outputs: [] },
    decoupled: false,
    outputs: "configured",
    ports: PythonLog.only(yield* Effect.context<never>(), instance.name),
  }).pipe(
    Effect.tapError(({ reason }) => Effect.logError(`Failed to initialize Python stub for auto-complete: ${reason}`)),
    Effect.mapError(({ reason }) => failure(reason)),
  )
  if (completed === undefined) return config
  return yield* Effect.mapError(Effect.fromResult(merged(config, completed)), failure)
})

const maxFileBytes = 64 * 1024 * 1024

/** Whether the file may have the function; without it, no process needs to start. */
const mayComplete = (code: string): boolean =>
  code.includes("auto_complete_config") || !/^class TritonPythonModel\s*(?:\(\s*(?:object\s*)?\)\s*)?:/m.test(code)

/** The fields that the function can set. Like Triton, all others stay as they are. */
const merged = (config: ModelConfig, completed: object): Result.Result<ModelConfig, string> =>
  Result.try({
    try: () => {
      const { maxBatchSize, input, output, schedulingChoice, modelTransactionPolicy } = ConfigJson.parse(
        JSON.stringify(completed),
      )
      return create(ModelConfigSchema, {
        ...config,
        maxBatchSize,
        input,
        output,
        schedulingChoice,
        ...(modelTransactionPolicy && { modelTransactionPolicy }),
      })
    },
    catch: (error) => `auto_complete_config returned a wrong configuration: ${errorMessage(error)}`,
  })
