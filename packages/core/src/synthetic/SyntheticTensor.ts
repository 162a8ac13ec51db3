/**
 * Synthetic tensors for a signature: zeros, or reproducible random values. SampleCodec.ts encodes values that users
 * provide.
 */
import { make, type Random } from "./Random.ts"
import { byteWidth, type FixedDataType, view } from "../tensor/DataType.ts"
import type { Dim, TensorSpec } from "../tensor/TensorSpec.ts"
import { elementCount, encodeElements, type Shape, TypedTensor } from "../tensor/TypedTensor.ts"

export type SyntheticValues = "zeros" | "random"

/** Extents of symbolic dims, by their name. */
export interface Sizes {
  readonly [dim: string]: number
}

/** Always the same ones, so that two starts of a model are alike. */
export const random = (): Random => make(0x9e3779b9)

/** The shape of one row: dims without a size are as small as can be, 1. */
export const shape = (dims: ReadonlyArray<Dim>, sizes: Sizes): Shape =>
  dims.map((dim) => (typeof dim === "string" ? (sizes[dim] ?? 1) : Math.abs(dim)))

/**
 * A synthetic tensor. Random floats are from 0 to 1, and integers are 0 or 1, which are valid indices of most
 * vocabularies. Indices of labels cover all labels. Texts are empty, or a few letters; if the field has an example
 * (`Tensor.json`, or a Schema with `examples`), they are the example.
 */
export const tensor = (spec: TensorSpec, shape: Shape, from: SyntheticValues, random: Random): TypedTensor => {
  const count = elementCount(shape)
  if (spec.datatype === "BYTES") {
    const element = () => spec.example?.() ?? new TextEncoder().encode(from === "zeros" ? "" : letters(random))
    return new TypedTensor("BYTES", shape, encodeElements(Array.from({ length: count }, element)))
  }
  const bytes = new Uint8Array(count * (byteWidth(spec.datatype) ?? 1))
  if (from === "random") fill(spec.datatype, bytes, spec.labels?.length ?? 2, random)
  return new TypedTensor(spec.datatype, shape, bytes)
}

const fill = (datatype: FixedDataType, bytes: Uint8Array<ArrayBuffer>, below: number, random: Random) => {
  const width = byteWidth(datatype) ?? 1
  if (datatype === "FP16" || datatype === "BF16") {
    // Writes 16-bit patterns, as Float16Array may be missing: exponents of numbers below 1, and any fraction.
    const [exponent, fraction] = datatype === "FP16" ? [14 << 10, 2 ** 10] : [126 << 7, 2 ** 7]
    const halves = new Uint16Array(bytes.buffer)
    for (let index = 0; index < halves.length; index++) halves[index] = exponent | Math.floor(random.next() * fraction)
    return
  }
  const elements = view(datatype, bytes.buffer, 0, bytes.length / width)
  for (let index = 0; index < elements.length; index++) {
    const value = datatype.startsWith("FP") ? random.next() : Math.floor(random.next() * below)
    Reflect.set(elements, index, width === 8 && datatype !== "FP64" ? BigInt(value) : value)
  }
}

const letters = (random: Random): string =>
  Array.from({ length: 1 + Math.floor(random.next() * 16) }, () =>
    String.fromCharCode(97 + Math.floor(random.next() * 26)),
  ).join("")
