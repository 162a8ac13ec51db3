/**
 * Validates the inputs and outputs of a configuration: names, datatypes, dims, reshapes, and the inputs and outputs of
 * batches. The messages and their order are Triton's.
 */
import {
  DataType,
  DataTypeSchema,
  type ModelConfig,
  ModelInput_Format as Format,
  ModelInput_FormatSchema as FormatSchema,
  type ModelInput,
  type ModelOutput,
} from "@nereid/protocol/model_config"
import * as BatchTensorCheck from "./BatchTensorCheck.ts"

export const problem = (config: ModelConfig): string | undefined => {
  const found =
    first(config.input, (input) => shapeProblem(config, "input", input) ?? inputProblem(input) ?? kindProblem(input)) ??
    first(config.output, (output) => shapeProblem(config, "output", output) ?? kindProblem(output)) ??
    BatchTensorCheck.problem(config)
  if (found !== undefined) return `${found} for ${config.name}`
  return twice("input", config) ?? twice("output", config)
}

const first = <A>(all: ReadonlyArray<A>, problemOf: (one: A) => string | undefined): string | undefined => {
  for (const one of all) {
    const found = problemOf(one)
    if (found !== undefined) return found
  }
  return undefined
}

const shapeProblem = (
  { maxBatchSize, backend }: ModelConfig,
  kind: "input" | "output",
  tensor: ModelInput | ModelOutput,
): string | undefined => {
  const { name, dataType, dims, reshape } = tensor
  if (name === "") return `model ${kind} must specify 'name'`
  const subject = `model ${kind} '${name}'`
  if (dataType === DataType.TYPE_INVALID) return `${subject} must specify 'data_type'`
  // A number of an enum may be any, also in the text format.
  if (DataTypeSchema.value[dataType] === undefined) return `${subject} has unexpected data_type ${dataType}`
  if (dims.length === 0) return `${subject} must specify 'dims'`
  // An ONNX graph may have scalars, which only such a reshape describes.
  if (reshape?.shape.length === 0 && maxBatchSize === 0 && backend !== "onnxruntime") {
    return `${subject} cannot have empty reshape for non-batching model as scalar tensors are not supported`
  }
  if (!dims.every(isExtent)) return `${subject} dimension ${extents}`
  if (!dims.every(isCountable)) return `${subject} dimension must be at most ${Number.MAX_SAFE_INTEGER}`
  if (reshape === undefined) return undefined
  if (!reshape.shape.every(isExtent)) return `${subject} reshape dimensions ${extents}`
  if (!reshape.shape.every(isCountable)) {
    return `${subject} reshape dimensions must be at most ${Number.MAX_SAFE_INTEGER}`
  }
  return reshapeProblem(subject, dims, reshape.shape)
}

const inputProblem = ({ name, format, dims }: ModelInput): string | undefined => {
  if (FormatSchema.value[format] === undefined) return `model input '${name}' has unexpected format ${format}`
  return format !== Format.NONE && dims.length !== 3 ? "model input NHWC/NCHW require 3 dims" : undefined
}

const kindProblem = ({ isShapeTensor, isNonLinearFormatIo }: ModelInput | ModelOutput): string | undefined => {
  if (isShapeTensor) return "shape tensors are only supported for TensorRT platform"
  return isNonLinearFormatIo ? "Non-linear IO format is only supported for the TensorRT platform" : undefined
}

const isExtent = (extent: bigint): boolean => extent >= 1n || extent === -1n

/** Whether a JavaScript number represents the dimension exactly. */
const isCountable = (extent: bigint): boolean => extent <= Number.MAX_SAFE_INTEGER

const extents = "must be integer >= 1, or -1 to indicate a variable-size dimension"

/** Elements between variable extents must be as many on both sides: [2,4,-1,6] may be [8,-1,1,6]. */
const reshapeProblem = (
  subject: string,
  dims: ReadonlyArray<bigint>,
  shape: ReadonlyArray<bigint>,
): string | undefined => {
  const [from, to] = [counts(dims), counts(shape)]
  if (from.length !== to.length && from.length > 1 && to.length > 1) {
    return `${subject} has different number of variable-size dimensions for dims and reshape`
  }
  return from.length === to.length && from.every((count, index) => count === to[index])
    ? undefined
    : `${subject} has different size for dims and reshape`
}

/** Elements of each part that variable extents divide the dims into. */
const counts = (dims: ReadonlyArray<bigint>): ReadonlyArray<bigint> => {
  const parts = [1n]
  for (const dim of dims) {
    if (dim === -1n) parts.push(1n)
    else parts[parts.length - 1] = (parts.at(-1) ?? 1n) * dim
  }
  return parts
}

const twice = (kind: "input" | "output", config: ModelConfig): string | undefined => {
  const names = config[kind].map(({ name }) => name)
  const name = names.find((name, index) => names.indexOf(name) < index)
  return name === undefined ? undefined : `model ${kind} '${name}' of ${config.name} is given more than once`
}
