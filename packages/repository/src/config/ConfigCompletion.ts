/**
 * Completes a configuration without inputs or outputs from its model file, by Triton's rules: "Auto-Generated Model
 * Configuration" in https://github.com/triton-inference-server/server/blob/main/docs/user_guide/model_configuration.md
 * Fields that the configuration sets stay as they are; FileCheck.ts checks them against the file.
 */
import { create } from "@bufbuild/protobuf"
import { Result } from "effect"
import type { DataType as WireDataType } from "@nereid/core/internal/tensor/DataType"
import { isDynamic, wireDims } from "@nereid/core/internal/tensor/TensorSpec"
import type { FileSignature, FileTensor } from "@nereid/onnx/internal/OnnxFile"
import {
  DataType,
  type ModelConfig,
  type ModelInput,
  ModelInputSchema,
  type ModelOutput,
  ModelOutputSchema,
  type ModelTensorReshape,
  ModelTensorReshapeSchema,
} from "@nereid/protocol/model_config"
import { dynamicBatching } from "./ConfigDefaults.ts"

/**
 * `defaultMaxBatchSize` where the file can batch and the configuration does not say how many rows; 0 for no batching.
 */
export const complete = (
  config: ModelConfig,
  file: FileSignature,
  defaultMaxBatchSize: number,
): Result.Result<ModelConfig, string> => {
  const { name, input, output } = config
  if (input.length > 0 && output.length > 0) return Result.succeed(withTypes(config, file))
  const canBatch = [...file.inputs, ...file.outputs].every(({ dims }) => dims?.[0] !== undefined && isDynamic(dims[0]))
  if (!canBatch && config.maxBatchSize > 0) {
    const problem = "model does not support batching while non-zero max_batch_size is specified"
    return Result.fail(`autofill failed for model '${name}': ${problem}`)
  }
  // The configured inputs and outputs show whether they include the batch dimension.
  const isOpen = input.length === 0 && output.length === 0
  const maxBatchSize = canBatch && isOpen && config.maxBatchSize === 0 ? defaultMaxBatchSize : config.maxBatchSize
  const isUnscheduled = config.schedulingChoice.case === undefined
  const tensors = withTypes({ ...config, maxBatchSize }, file)
  const batching = maxBatchSize > 0
  return Result.succeed({
    ...tensors,
    schedulingChoice: isUnscheduled && maxBatchSize > 1 ? dynamicBatching : config.schedulingChoice,
    input:
      input.length > 0 ? tensors.input : file.inputs.map((found) => create(ModelInputSchema, tensor(found, batching))),
    output:
      output.length > 0
        ? tensors.output
        : file.outputs.map((found) => create(ModelOutputSchema, tensor(found, batching))),
  })
}

/** Datatype and dims of inputs and outputs that are named and no more. */
const withTypes = (config: ModelConfig, file: FileSignature): ModelConfig => {
  const typed = <T extends ModelInput | ModelOutput>(given: T, tensors: ReadonlyArray<FileTensor>): T => {
    const found = tensors.find(({ name }) => name === given.name)
    if (found === undefined) return given
    const { dataType, dims, reshape = given.reshape } = tensor(found, config.maxBatchSize > 0)
    return {
      ...given,
      dataType: given.dataType === DataType.TYPE_INVALID ? dataType : given.dataType,
      ...(given.dims.length === 0 ? { dims, reshape } : {}),
    }
  }
  return {
    ...config,
    input: config.input.map((given) => typed(given, [...file.inputs, ...file.defaultedInputs])),
    output: config.output.map((given) => typed(given, file.outputs)),
  }
}

export const configDataType = (datatype: WireDataType): DataType =>
  datatype === "BYTES" ? DataType.TYPE_STRING : DataType[`TYPE_${datatype}`]

const tensor = (
  { name, datatype, dims = [] }: FileTensor,
  batching: boolean,
): { name: string; dataType: DataType; dims: Array<bigint>; reshape?: ModelTensorReshape } => {
  const fileDims = wireDims(batching ? dims.slice(1) : dims).map(BigInt)
  const dataType = datatype === undefined ? DataType.TYPE_INVALID : configDataType(datatype)
  // A configuration has no dims for what has none: it is one element for clients, and nothing but a scalar for the
  // model.
  return fileDims.length === 0
    ? { name, dataType, dims: [1n], reshape: create(ModelTensorReshapeSchema) }
    : { name, dataType, dims: fileDims }
}
