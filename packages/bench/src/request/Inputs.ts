/**
 * Generates inputs for a model: shapes from its metadata, with random elements or zeros. Models that need meaningful
 * values require a file (InputFile.ts).
 */
import { byteWidth, type DataType } from "@nereid/core/internal/tensor/DataType"
import { elementCount, encodeElements } from "@nereid/core/internal/tensor/TypedTensor"
import type { WireTensor } from "@nereid/core/internal/wire/WireRequest"
import type { ModelTraits, TensorTraits } from "../target/ModelTraits.ts"
import type { Random } from "@nereid/core/internal/synthetic/Random"

export interface InputOptions {
  /** Number of requests with different elements, sent in turn. */
  readonly variants: number
  /** Rows of each request. */
  readonly batchSize: number
  /** Shapes by input, with or without the batch axis. Required for variable axes. */
  readonly shapes: ReadonlyMap<string, ReadonlyArray<number>>
  readonly values: "random" | "zero"
  /** Value of every BYTES element; undefined for random letters. */
  readonly text: string | undefined
  /** Letters of an element of BYTES. */
  readonly textLength: number
}

/**
 * Generates the requests.
 * @throws Error if the model lacks an input of the options
 */
export const make = (model: ModelTraits, options: InputOptions, random: Random): ReadonlyArray<WireTensor> => {
  const { batchSize, shapes } = options
  if (model.inputs.length === 0) throw new Error(`the server reports no inputs of model '${model.name}'`)
  if (model.maxBatchSize === 0 && batchSize > 1) {
    throw new Error(`model '${model.name}' does not batch: the batch size must be 1, got ${batchSize}`)
  }
  if (model.maxBatchSize > 0 && batchSize > model.maxBatchSize) {
    throw new Error(`the batch size of model '${model.name}' must be at most ${model.maxBatchSize}, got ${batchSize}`)
  }
  for (const name of shapes.keys()) {
    if (model.inputs.some((input) => input.name === name)) continue
    const names = model.inputs.map((input) => input.name).join(", ")
    throw new Error(`a shape names the unknown input '${name}' of model '${model.name}'; its inputs: ${names}`)
  }
  return model.inputs.flatMap((input) => {
    const given = shapes.get(input.name)
    // Omits an optional input if its shape is unknown and not given.
    if (input.optional && given === undefined && defaultShape(input, model).includes(-1)) return []
    const shape = shapeOf(input, model, batchSize, given)
    return [
      { name: input.name, datatype: input.datatype, shape, bytes: elements(input.datatype, shape, options, random) },
    ]
  })
}

/** Returns the model's shape without the batch axis. */
const defaultShape = ({ shape }: TensorTraits, { maxBatchSize }: ModelTraits): ReadonlyArray<number> =>
  maxBatchSize > 0 ? shape.slice(1) : shape

/**
 * Returns the shape of an input of a request, with the batch axis.
 * @throws Error if the shape is unknown or invalid
 */
export const shapeOf = (
  input: TensorTraits,
  model: ModelTraits,
  batchSize: number,
  given: ReadonlyArray<number> | undefined,
): ReadonlyArray<number> => {
  const dims = defaultShape(input, model)
  const batch = model.maxBatchSize > 0 ? [batchSize] : []
  const printed = `${input.datatype}[${input.shape}]`
  if (given === undefined) {
    if (!dims.includes(-1)) return [...batch, ...dims]
    const example = dims.map((extent) => (extent === -1 ? 8 : extent))
    throw new Error(
      `input '${input.name}' is ${printed} with dynamic dimensions: specify a shape, such as ${input.name}:${example}`,
    )
  }
  const fits = (shape: ReadonlyArray<number>, expected: ReadonlyArray<number>) =>
    shape.length === expected.length && shape.every((extent, axis) => [-1, extent].includes(expected[axis] ?? -2))
  if (fits(given, dims)) return [...batch, ...given]
  if (fits(given, [...batch, ...dims])) return given
  const rows = batch.length > 0 ? ` with a batch of ${batchSize}` : ""
  throw new Error(`the shape ${input.name}:${given} does not fit ${printed}${rows}`)
}

/** Integers are 0 to 127, which every datatype has and most models take; numbers with a point are between 0 and 1. */
const elements = (
  datatype: DataType,
  shape: ReadonlyArray<number>,
  { values, text, textLength }: InputOptions,
  random: Random,
): Uint8Array => {
  const count = elementCount(shape)
  const width = byteWidth(datatype)
  if (width === undefined) {
    const letters = () => Uint8Array.from({ length: textLength }, () => 0x61 + Math.floor(random.next() * 26))
    const zeros = new Uint8Array(textLength).fill(0x30)
    const given = text === undefined ? undefined : new TextEncoder().encode(text)
    return encodeElements(Array.from({ length: count }, () => given ?? (values === "zero" ? zeros : letters())))
  }
  const bytes = new Uint8Array(count * width)
  if (values === "zero") return bytes
  const view = new DataView(bytes.buffer)
  switch (datatype) {
    case "FP64":
      for (let index = 0; index < count; index++) view.setFloat64(8 * index, random.next(), true)
      break
    case "FP32":
      for (let index = 0; index < count; index++) view.setFloat32(4 * index, random.next(), true)
      break
    case "FP16":
      // From 0.5 on: the exponent is the same and the fraction is any.
      for (let index = 0; index < count; index++) view.setUint16(2 * index, 0x3800 + random.next() * 0x400, true)
      break
    case "BF16":
      for (let index = 0; index < count; index++) view.setUint16(2 * index, 0x3f00 + random.next() * 0x80, true)
      break
    default: {
      const limit = datatype === "BOOL" ? 2 : 128
      for (let index = 0; index < count; index++) bytes[index * width] = random.next() * limit
    }
  }
  return bytes
}
