/**
 * Plans a version of a model before it is loaded: its configuration, completed from its file and checked, the labels of
 * its classes, and its warm-ups. ModelPlan.ts decides which versions there are.
 */
import { Effect, Result } from "effect"
import * as ModelSource from "@nereid/onnx/internal/ModelSource"
import type { Sequencing } from "@nereid/core/internal/model/Sequencing"
import type { ModelConfig } from "@nereid/protocol/model_config"
import * as ConfigCheck from "../config/ConfigCheck.ts"
import * as ConfigCompletion from "../config/ConfigCompletion.ts"
import * as ConfigDefaults from "../config/ConfigDefaults.ts"
import * as InstanceGroupCheck from "../config/InstanceGroupCheck.ts"
import * as PythonBackend from "../config/PythonBackend.ts"
import * as Support from "../config/Support.ts"
import * as TensorCheck from "../config/TensorCheck.ts"
import { failure, invalid, type LoadFailure, refuse } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as BackendDirectory from "./BackendDirectory.ts"
import * as ModelWarmUp from "./ModelWarmUp.ts"
import * as SequencePlan from "./SequencePlan.ts"

/** Completes the configuration of a model in Python by its code. `path` is the directory of the model. */
export type CompletePython = (
  files: VersionFiles,
  path: string,
  config: ModelConfig,
) => Effect.Effect<ModelConfig, LoadFailure>

export interface PlanOptions {
  /** Completes the configuration from the model file. */
  readonly autoComplete: boolean
  /** Maximum batch size of a model that supports batching and whose configuration sets none. */
  readonly defaultMaxBatchSize: number
  /** Seconds without batches after which an ONNX model ends its threads, if its configuration has no other; 0: never. */
  readonly idleSeconds: number
  /** The numbers of the GPUs that there are. */
  readonly gpus: ReadonlyArray<number>
  readonly completePython: CompletePython
  /** Directory of backends in Python; undefined without one. */
  readonly backendDirectory: string | undefined
}

export interface VersionFiles {
  readonly version: number
  /** The directory of the version. */
  readonly folder: string
  /** The model file; the directory of a version that has none. */
  readonly file: string
  /** Changes with the files of this version, and with the choice of the model file among them. */
  readonly stamp: string
}

export interface VersionPlan extends VersionFiles {
  /** The directory of the model. */
  readonly path: string
  readonly config: ModelConfig
  /** Labels by output. */
  readonly labels: ReadonlyMap<string, ReadonlyArray<string>>
  /** Undefined for a model without sequences. */
  readonly sequencing: Sequencing | undefined
  /** Warm-ups that run before the version takes requests. */
  readonly warmUp: ReadonlyArray<ModelWarmUp.ModelWarmUp>
  /** The default of PlanOptions. */
  readonly idleSeconds: number
}

/**
 * `readNames`: the files of the version. `given`: the configuration of the model, with the backend that runs it. The
 * order of the checks is Triton's.
 */
export const make = Effect.fnUntraced(function* (
  files: VersionFiles,
  readNames: Result.Result<ReadonlySet<string>, LoadFailure>,
  path: string,
  given: ModelConfig,
  { autoComplete, defaultMaxBatchSize, idleSeconds, gpus, completePython, backendDirectory }: PlanOptions,
): Effect.fn.Return<VersionPlan, LoadFailure> {
  const { file } = files
  const names = yield* Effect.fromResult(readNames)
  yield* refuse(Support.backendProblem(given, names))
  if (PythonBackend.isShared(given)) yield* BackendDirectory.check(given, backendDirectory)
  yield* refuse(InstanceGroupCheck.problem(ConfigDefaults.filled(given, gpus), gpus))
  const completion = Effect.flatMap(source(file), ({ signature }) =>
    Effect.fromResult(Result.mapError(ConfigCompletion.complete(given, signature, defaultMaxBatchSize), invalid)),
  )
  const completed =
    autoComplete && given.backend === "onnxruntime"
      ? yield* completion
      : autoComplete && PythonBackend.runsPython(given)
        ? yield* completePython(files, path, ConfigDefaults.filled(given, gpus))
        : given
  const config = ConfigDefaults.filled(completed, gpus)
  yield* refuse(ConfigCheck.problem(config) ?? TensorCheck.problem(config) ?? Support.problem(config))
  return {
    ...files,
    path,
    config,
    labels: yield* labels(config, path),
    sequencing: yield* SequencePlan.make(config, path),
    warmUp: yield* ModelWarmUp.all(config, path),
    idleSeconds,
  }
})

/** The model file, read without ONNX Runtime. */
export const source = (file: string): Effect.Effect<ModelSource.ModelSource, LoadFailure> =>
  Effect.mapError(ModelSource.read(file), (problem) => {
    if (problem._tag === "NotOnnx") return failure(`${file} is not an ONNX model: ${problem.message}`)
    const isMissing = problem.code === "ENOENT"
    return failure(isMissing ? `unable to find '${file}'` : `cannot read ${file}: ${problem.message}`)
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
