/**
 * Contract of a model in a repository, from its configuration, and from its file if that is an ONNX graph. Nothing is
 * loaded, so models of other backends also have a contract if their configuration is complete.
 */
import { Effect, Result } from "effect"
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { sequenceOf } from "@nereid/core/internal/configuration/MetadataMessage"
import type { Contract, ContractTensor } from "@nereid/core/internal/contract/Contract"
import { isDynamic } from "@nereid/core/internal/tensor/TensorSpec"
import type { FileSignature } from "@nereid/onnx/internal/OnnxFile"
import { DataTypeSchema, type ModelConfig, type ModelInput, type ModelOutput } from "@nereid/protocol/model_config"
import * as ConfigCheck from "../config/ConfigCheck.ts"
import * as ConfigCompletion from "../config/ConfigCompletion.ts"
import * as ConfigDefaults from "../config/ConfigDefaults.ts"
import { datatypeOf } from "../config/Declaration.ts"
import { failure, type LoadFailure, refuse } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as ModelPlan from "./ModelPlan.ts"
import * as VersionPlan from "./VersionPlan.ts"
import * as TensorCheck from "../config/TensorCheck.ts"
import * as VersionPolicy from "../config/VersionPolicy.ts"

export interface ContractOptions {
  /** The option `configName` of Repository. */
  readonly configName?: string | undefined
  /** Rows of a batch of a model that can batch, and whose configuration does not say how many. Default 4. */
  readonly defaultMaxBatchSize?: number | undefined
  /** Version. Default: the latest version that would be served. */
  readonly version?: number | undefined
}

/** The names of its models. */
export const models = (directory: string): Effect.Effect<ReadonlyArray<string>, LoadFailure> =>
  Effect.map(ModelDirectory.models(directory), (names) => names.toSorted())

/** Reads the contract of the model with this name. */
export const read = Effect.fn("RepositoryContract.read")(function* (
  directory: string,
  name: string,
  { configName, defaultMaxBatchSize = 4, version }: ContractOptions = {},
): Effect.fn.Return<Contract, LoadFailure> {
  const path = join(directory, name)
  if (!existsSync(path)) return yield* failure("the model does not exist")
  const found = yield* ModelDirectory.read(name, path, configName)
  const given = yield* Effect.fromResult(ModelPlan.written(found))
  yield* refuse(ConfigCheck.nameProblem(given, name))
  const files = ModelDirectory.fileNames(found)
  const identified = ConfigDefaults.identified(given, name, files)
  // A configuration of another backend, or without one, has a contract too.
  if (identified.backend !== "" || identified.platform !== "") yield* refuse(ConfigCheck.problem(identified))
  const number = version ?? VersionPolicy.chosen(identified.versionPolicy, [...found.versions.keys()]).at(-1)
  if (version !== undefined && !found.versions.has(version)) return yield* failure(`it has no version ${version}`)
  const file = identified.backend === "onnxruntime" ? yield* signature(identified, path, number) : undefined
  const completed =
    file === undefined ? Result.succeed(identified) : ConfigCompletion.complete(identified, file, defaultMaxBatchSize)
  const config = yield* Effect.mapError(Effect.fromResult(completed), failure)
  if (config.input.length === 0 && config.output.length === 0) {
    return yield* failure("neither a configuration nor a model file declares its inputs and outputs")
  }
  yield* refuse(TensorCheck.problem(config))
  const contract = fromConfig(config, yield* VersionPlan.labels(config, path), file)
  return { ...contract, sequence: contract.sequence ?? (yield* ofSteps(directory, config, configName)) }
})

/** The sequences that the steps of an ensemble require. Undefined if unknown, and for another model. */
const ofSteps = Effect.fnUntraced(function* (
  directory: string,
  model: ModelConfig,
  configName: string | undefined,
): Effect.fn.Return<Contract["sequence"]> {
  const seen = new Set([model.name])
  const ensembles = [model]
  const found: Array<Contract["sequence"]> = []
  for (const { schedulingChoice } of ensembles) {
    if (schedulingChoice.case !== "ensembleScheduling") continue
    for (const { modelName } of schedulingChoice.value.step) {
      if (seen.has(modelName)) continue
      seen.add(modelName)
      const config = yield* Effect.orElseSucceed(written(directory, modelName, configName), () => undefined)
      if (config?.schedulingChoice.case === "ensembleScheduling") ensembles.push(config)
      else found.push(config && sequenceOf(config))
    }
  }
  const idles = found.flatMap((sequence) => (sequence ? [sequence.maxIdle ?? Infinity] : []))
  if (idles.length === 0) return found.length > 0 && found.every((sequence) => sequence === false) ? false : undefined
  const maxIdle = Math.min(...idles)
  return { maxIdle: maxIdle === Infinity ? undefined : maxIdle }
})

/** The configuration of a model as it is written. */
const written = Effect.fnUntraced(function* (directory: string, name: string, configName: string | undefined) {
  const found = yield* ModelDirectory.read(name, yield* ModelDirectory.below(resolve(directory), name), configName)
  return yield* Effect.fromResult(ModelPlan.written(found))
})

/** Reads the signature of the file; undefined if it is absent and the configuration is complete. */
const signature = Effect.fnUntraced(function* (
  { input, output, defaultModelFilename }: ModelConfig,
  path: string,
  version: number | undefined,
) {
  if (version === undefined) return undefined
  const file = yield* ModelDirectory.below(join(path, String(version)), defaultModelFilename)
  if (input.length > 0 && output.length > 0 && !existsSync(file)) return undefined
  return (yield* VersionPlan.source(file)).signature
})

/**
 * Returns the contract of a complete configuration. `file` is the signature of an ONNX model, which may be more
 * precise.
 */
export const fromConfig = (
  config: ModelConfig,
  labels: ReadonlyMap<string, ReadonlyArray<string>>,
  file?: FileSignature,
): Contract => {
  const { name, input, output, maxBatchSize, modelTransactionPolicy } = config
  const tensor = (given: ModelInput | ModelOutput, found: FileSignature["inputs"]): ContractTensor => ({
    name: given.name,
    datatype: datatypeOf(given) ?? DataTypeSchema.value[given.dataType]?.name ?? String(given.dataType),
    dims: named(given, found.find(({ name }) => name === given.name)?.dims, maxBatchSize > 0),
    optional: false,
  })
  return {
    name,
    inputs: input.map((given) => ({ ...tensor(given, file?.inputs ?? []), optional: given.optional })),
    outputs: output.map((given) => {
      const classes = labels.get(given.name)
      const plain = tensor(given, file?.outputs ?? [])
      return classes === undefined ? plain : { ...plain, labels: classes }
    }),
    maxBatchSize,
    decoupled: modelTransactionPolicy?.decoupled === true,
    sequence: sequenceOf(config),
  }
}

/** Names variable dims as in the file, if they agree with it. */
const named = (
  { dims, reshape }: ModelInput | ModelOutput,
  file: ContractTensor["dims"],
  batching: boolean,
): ContractTensor["dims"] => {
  const whole = reshape === undefined ? file : undefined
  const rowDims = batching ? whole?.slice(1) : whole
  return dims.map(Number).map((dim, axis) => {
    const other = rowDims?.length === dims.length ? rowDims[axis] : undefined
    return isDynamic(dim) && typeof other === "string" ? other : dim
  })
}
