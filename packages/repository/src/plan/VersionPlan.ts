/**
 * Plans a version of a model before it is loaded: its configuration, completed from its file and checked, the labels of
 * its classes, and its warm-ups. ModelPlan.ts decides which versions there are.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, Result } from "effect"
import { readFile } from "node:fs/promises"
import * as OnnxFile from "@nereid/onnx/internal/OnnxFile"
import type { ModelConfig } from "@nereid/protocol/model_config"
import * as ConfigCheck from "../config/ConfigCheck.ts"
import * as ConfigCompletion from "../config/ConfigCompletion.ts"
import * as ConfigDefaults from "../config/ConfigDefaults.ts"
import * as Support from "../config/Support.ts"
import { failure, LoadFailure, refuse } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as ModelWarmUp from "./ModelWarmUp.ts"

export interface PlanOptions {
  /** Completes the configuration from the model file. */
  readonly autoComplete: boolean
  /** Maximum batch size of a model that supports batching and whose configuration sets none. */
  readonly defaultMaxBatchSize: number
  /** The numbers of the GPUs that there are. */
  readonly gpus: ReadonlyArray<number>
}

export interface VersionFiles {
  readonly version: number
  /** The model file; the directory of a version that has none. */
  readonly file: string
  /** Changes with the files of this version. */
  readonly stamp: string
}

export interface VersionPlan extends VersionFiles {
  /** The directory of the model. */
  readonly path: string
  readonly config: ModelConfig
  /** Labels by output. */
  readonly labels: ReadonlyMap<string, ReadonlyArray<string>>
  /** Warm-ups that run before the version takes requests. */
  readonly warmUp: ReadonlyArray<ModelWarmUp.ModelWarmUp>
}

/**
 * `given`: the configuration of the model, with the backend that runs it. What its file is to blame for is a failure of
 * the version.
 */
export const make = Effect.fnUntraced(function* (
  files: VersionFiles,
  path: string,
  given: ModelConfig,
  { autoComplete, defaultMaxBatchSize, gpus }: PlanOptions,
): Effect.fn.Return<VersionPlan, LoadFailure> {
  const { version, file } = files
  const withVersion = Effect.mapError(({ message }: LoadFailure) => new LoadFailure({ message, version }))
  yield* withVersion(refuse(Support.backendProblem(given)))
  const completion = Effect.flatMap(signature(file), (found) =>
    Effect.fromResult(Result.mapError(ConfigCompletion.complete(given, found, defaultMaxBatchSize), failure)),
  )
  const completed = autoComplete && given.backend === "onnxruntime" ? yield* withVersion(completion) : given
  const config = ConfigDefaults.filled(completed, gpus)
  yield* refuse(ConfigCheck.problem(config, gpus) ?? Support.problem(config))
  return {
    ...files,
    path,
    config,
    labels: yield* labels(config, path),
    warmUp: yield* ModelWarmUp.all(config, path),
  }
})

/** The signature of a model file. */
export const signature = Effect.fnUntraced(function* (file: string) {
  const bytes = yield* Effect.tryPromise({
    try: (signal) => readFile(file, { signal }),
    catch: (error) =>
      failure(isMissing(error) ? `unable to find '${file}'` : `cannot read ${file}: ${errorMessage(error)}`),
  })
  return yield* Effect.try({
    try: () => OnnxFile.signature(bytes),
    catch: (error) => failure(`${file} is not an ONNX model: ${errorMessage(error)}`),
  })
})

/** Reads the labels of the classes, by output. */
export const labels = Effect.fnUntraced(function* ({ output }: ModelConfig, path: string) {
  const all = new Map<string, ReadonlyArray<string>>()
  for (const { name, labelFilename } of output) {
    if (labelFilename === "") continue
    all.set(name, yield* ModelDirectory.lines(yield* ModelDirectory.below(path, labelFilename)))
  }
  return all
})

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT"
