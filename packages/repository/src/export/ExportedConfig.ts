/**
 * Configuration of a model in code, as a person would write it: without defaults, and with settings of a file, such as
 * labels. Notes name features that a configuration cannot express.
 */
import { create } from "@bufbuild/protobuf"
import { Result } from "effect"
import * as ConfigurationMessage from "@nereid/core/internal/configuration/ConfigurationMessage"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { ModelFile } from "@nereid/core/internal/running/ModelFile"
import { isDynamic } from "@nereid/core/internal/tensor/TensorSpec"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import {
  type ModelConfig,
  ModelConfigSchema,
  type ModelInput,
  type ModelOptimizationPolicy,
  ModelOptimizationPolicySchema,
  type ModelOutput,
  ModelParameterSchema,
  ModelTensorReshapeSchema,
} from "@nereid/protocol/model_config"
import * as BatchGroupOrder from "../config/BatchGroupOrder.ts"
import * as LatencyTarget from "../config/LatencyTarget.ts"
import * as ExportedWarmUp from "./ExportedWarmUp.ts"
import type { ModelFileContent } from "./ModelFileContent.ts"

export interface ExportedConfig {
  readonly config: ModelConfig
  readonly files: ReadonlyArray<ModelFileContent>
  readonly notes: ReadonlyArray<string>
}

export const make = (
  definition: Definition<Fields, Fields>,
  running: RunningModel,
): Result.Result<ExportedConfig, string> => {
  const declaredConfig = ConfigurationMessage.make(running)
  const {
    description: { modelFile },
  } = running
  const input = Result.all(declaredConfig.input.map((tensor) => withDims(tensor, modelFile !== undefined)))
  if (Result.isFailure(input)) return Result.fail(input.failure)
  const output = Result.all(declaredConfig.output.map((tensor) => withDims(tensor, modelFile !== undefined)))
  if (Result.isFailure(output)) return Result.fail(output.failure)
  const labels = labelFiles(running)
  // A module includes its own warm-ups.
  const warmUp = modelFile === undefined ? ExportedWarmUp.noWarmUp : ExportedWarmUp.make(definition, running)
  const config: ModelConfig = {
    ...declaredConfig,
    platform: modelFile === undefined ? "" : declaredConfig.platform,
    backend: modelFile === undefined ? "nereid" : declaredConfig.backend,
    versionPolicy: undefined,
    input: input.success.map((tensor) => ({
      ...tensor,
      optional: tensor.optional && isOptional(running, tensor.name),
    })),
    output: output.success.map((tensor) => ({ ...tensor, labelFilename: labels.names.get(tensor.name) ?? "" })),
    instanceGroup: declaredConfig.instanceGroup.map((group, index) => ({
      ...group,
      name: group.name === `${declaredConfig.name}_${index}` ? "" : group.name,
    })),
    optimization: modelFile && optimizationOf(modelFile),
    parameters: Object.fromEntries(
      Object.entries({
        ...modelFile?.parameters,
        ...groupOrder(running),
        ...LatencyTarget.toParameter(running.description.batching.latencyTarget),
      }).map(([name, stringValue]) => [name, create(ModelParameterSchema, { stringValue })]),
    ),
    schedulingChoice: scheduling(declaredConfig),
    modelWarmup: [...warmUp.messages],
  }
  return Result.succeed({
    config: create(ModelConfigSchema, config),
    files: [...labels.files, ...warmUp.files],
    notes: [...labels.notes, ...(modelFile === undefined ? [] : lossNotes(definition, running)), ...warmUp.notes],
  })
}

/** Returns the optimization settings; undefined if all are defaults. */
const optimizationOf = ({ graphLevel, gpuAccelerators }: ModelFile): ModelOptimizationPolicy | undefined => {
  if (graphLevel === 0 && gpuAccelerators.length === 0) return undefined
  const gpuExecutionAccelerator = gpuAccelerators.map((name) => ({ name }))
  return create(ModelOptimizationPolicySchema, {
    ...(graphLevel === 0 ? {} : { graph: { level: graphLevel } }),
    ...(gpuAccelerators.length === 0 ? {} : { executionAccelerators: { gpuExecutionAccelerator } }),
  })
}

/**
 * A configuration has no dims for what has none: of a file it is one element to its callers, and a scalar to the model.
 */
const withDims = <T extends ModelInput | ModelOutput>(tensor: T, isFile: boolean): Result.Result<T, string> => {
  const { name, dims } = tensor
  if (dims.includes(0n)) return Result.fail(`'${name}' has a dimension of 0, which a configuration cannot express`)
  if (dims.length > 0) return Result.succeed(tensor)
  if (!isFile)
    return Result.fail(
      `'${name}' is a scalar, but a configuration requires at least one dimension: declare it with [1]`,
    )
  return Result.succeed({ ...tensor, dims: [1n], reshape: create(ModelTensorReshapeSchema) })
}

/** Tells whether an input is optional. An input with a default in code is required by the model file. */
const isOptional = ({ description: { modelFile, signature } }: RunningModel, input: string): boolean =>
  modelFile === undefined ||
  signature.inputs.some(({ name, default: preset }) => name === input && preset === undefined)

/** Returns the parameter that a model of a file needs to group its requests as the model in code does. */
const groupOrder = ({ description }: RunningModel): Readonly<Record<string, string>> => {
  const { modelFile, batching, signature, maxBatchSize } = description
  const isGrouped = signature.inputs.some(
    ({ dims, optional, default: preset }) => dims.some(isDynamic) || (optional && preset === undefined),
  )
  return modelFile !== undefined &&
    maxBatchSize > 0 &&
    batching.shared &&
    batching.groupOrder === "independent" &&
    isGrouped
    ? { [BatchGroupOrder.parameter]: batching.groupOrder }
    : {}
}

/** Returns the scheduling without the preferred batch size that is a default. */
const scheduling = ({ schedulingChoice, maxBatchSize }: ModelConfig): ModelConfig["schedulingChoice"] => {
  if (schedulingChoice.case !== "dynamicBatching") return schedulingChoice
  const [size, ...others] = schedulingChoice.value.preferredBatchSize
  const isFilled = size === maxBatchSize && others.length === 0
  return isFilled
    ? { case: "dynamicBatching", value: { ...schedulingChoice.value, preferredBatchSize: [] } }
    : schedulingChoice
}

const labelFiles = ({ description: { signature } }: RunningModel) => {
  const names = new Map<string, string>()
  const files: Array<ModelFileContent> = []
  const notes: Array<string> = []
  for (const [index, { name, labels }] of signature.outputs.entries()) {
    if (labels === undefined) continue
    const content = `${labels.join("\n")}\n`
    // Splits lines as the repository reads them.
    const lines = content.replace(/\s+$/, "").split(/\r?\n/)
    if (lines.length !== labels.length || lines.some((line, index) => line !== labels[index])) {
      notes.push(`omits the labels of '${name}', which cannot be written as lines of a file`)
      continue
    }
    const path = /^[\w-]+$/.test(name) ? `${name}.labels.txt` : `output${index}.labels.txt`
    names.set(name, path)
    files.push({ path, content })
  }
  return { names, files, notes }
}

/** Notes for a model whose file is served without its declaration. */
const lossNotes = (
  { parameters }: Definition<Fields, Fields>,
  { description: { signature, batching, modelFile } }: RunningModel,
): ReadonlyArray<string> => {
  const { shared, queueing, padTo, ragged, groupBy, onFailure } = batching
  const lost: ReadonlyArray<readonly [boolean, string]> = [
    [!shared && queueing !== undefined, "shared: false with queue policies"],
    [padTo.length > 0, "padTo"],
    [ragged.length > 0, "ragged"],
    [groupBy.inputs.length + groupBy.parameters.length > 0, "groupBy"],
    [onFailure === "bisect", 'onFailure: "bisect"'],
    [parameters !== undefined, "the declared parameters"],
    ...(modelFile?.unsupportedOptions ?? []).map((option) => [true, option] as const),
  ]
  const names = lost.flatMap(([isGiven, name]) => (isGiven ? [name] : []))
  const presets = signature.inputs.filter(({ default: preset }) => preset !== undefined).map(({ name }) => `'${name}'`)
  const scalars = [...signature.inputs, ...signature.outputs].filter(({ dims }) => dims.length === 0)
  return [
    ...(names.length > 0 ? [`a configuration cannot express ${names.join(", ")}`] : []),
    ...(presets.length > 0 ? [`the file requires ${presets.join(", ")}, which have a default in code`] : []),
    ...scalars.map(({ name }) => `'${name}' is a scalar in code, and has dims [1] in the repository`),
  ]
}
