/** Checks a configuration against its model file: names, datatypes and shapes. The messages are Triton's. */
import { isDynamic, wireDims } from "@nereid/core/internal/tensor/TensorSpec"
import type { DefaultedInput, FileSignature, FileTensor } from "@nereid/onnx/internal/OnnxFile"
import { DataTypeSchema, type ModelConfig, type ModelInput, type ModelOutput } from "@nereid/protocol/model_config"
import { configDataType } from "../config/ConfigCompletion.ts"

type Kind = "input" | "output"

/** The first disagreement; undefined for none. Outputs that the configuration does not name are left alone. */
export const problem = (config: ModelConfig, file: FileSignature): string | undefined => {
  for (const input of config.input) {
    const found = tensorProblem(config, "input", input, [...file.inputs, ...file.defaultedInputs])
    if (found !== undefined) return found
    const option = file.defaultedInputs.find(({ name }) => name === input.name)
    const lacking = option && optionProblem(config, option)
    if (lacking !== undefined) return lacking
    if (input.optional && option === undefined) {
      return `model '${config.name}', tensor '${input.name}': the model requires it but the model configuration has it as optional`
    }
  }
  const isRequired = ({ name }: ModelInput) => file.inputs.some((other) => other.name === name)
  const [expected, given] = [file.inputs.length, config.input.filter(isRequired).length]
  if (given !== expected) {
    return `unable to load model '${config.name}', the model expects ${expected} inputs but the model configuration specifies ${given}`
  }
  for (const output of config.output) {
    const found = tensorProblem(config, "output", output, file.outputs)
    if (found !== undefined) return found
  }
  return undefined
}

/** A batch has the value once for each of its rows. */
const optionProblem = (
  { name: model, maxBatchSize }: ModelConfig,
  { name, value }: DefaultedInput,
): string | undefined => {
  const location = `model '${model}', tensor '${name}'`
  if (value === undefined) return `${location}: its value is not in the model file itself`
  if (maxBatchSize === 0 || value.shape[0] === 1) return undefined
  return `${location}: a batch needs one row of it for each request, but its value in the model file has shape ${print(value.shape)}`
}

const tensorProblem = (
  { name: model, maxBatchSize }: ModelConfig,
  kind: Kind,
  tensor: ModelInput | ModelOutput,
  found: ReadonlyArray<FileTensor>,
): string | undefined => {
  const { name, dataType } = tensor
  const file = found.find((other) => other.name === name)
  if (file === undefined) {
    return `unexpected inference ${kind} '${name}', allowed ${kind}s are: ${found.map(({ name }) => name).join(", ")}`
  }
  const location = `model '${model}', tensor '${name}'`
  const given = DataTypeSchema.value[dataType]?.name ?? String(dataType)
  if (file.datatype === undefined) return `${location}: the model expects ${file.type}, which is not a servable tensor`
  if (configDataType(file.datatype) !== dataType) {
    const expected = DataTypeSchema.value[configDataType(file.datatype)]?.name
    return `${location}: the model expects datatype ${expected} but the model configuration specifies ${given}`
  }
  if (file.datatype === "BF16") return `${location}: onnxruntime-node has no ${given} tensors`
  const dims = (tensor.reshape?.shape ?? tensor.dims).map(Number)
  // An input without a rank is a scalar for ONNX Runtime, and for Triton. The rank of an output may be inferred.
  if (file.dims === undefined && kind === "output") return undefined
  return shapeProblem(location, wireDims(file.dims ?? []), dims, maxBatchSize)
}

const shapeProblem = (
  location: string,
  expected: ReadonlyArray<number>,
  dims: ReadonlyArray<number>,
  maxBatchSize: number,
): string | undefined => {
  if (maxBatchSize > 0 && expected[0] !== -1) {
    return (
      `${location}: for the model to support batching the shape should have at least 1 dimension and the first dimension ` +
      `must be -1; but shape expected by the model is ${print(expected)}`
    )
  }
  const full = maxBatchSize > 0 ? [-1, ...dims] : dims
  const agrees = expected.every((extent, axis) => {
    const other = full[axis] ?? -1
    return isDynamic(extent) || isDynamic(other) || extent === other
  })
  if (expected.length === full.length && agrees) return undefined
  const batching =
    maxBatchSize > 0
      ? "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete "
      : ""
  return (
    `${location}: the model expects ${expected.length} dimensions (shape ${print(expected)}) but the model configuration ` +
    `specifies ${full.length} dimensions (${batching}shape ${print(full)})`
  )
}

const print = (shape: ReadonlyArray<number>) => `[${shape.join(",")}]`
