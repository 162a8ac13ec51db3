/** The default of an optional input as JSON: every element of it, or one that all elements have. */
import { Schema } from "effect"
import type { DataType } from "../tensor/DataType.ts"
import { type Element, elementBytes } from "../tensor/Element.ts"
import { type DefaultTensor, type Dim, matches } from "../tensor/TensorSpec.ts"
import { elementCount, encodeElements, TypedTensor } from "../tensor/TypedTensor.ts"

/** An element: 64-bit integers are strings of digits, NaN and the infinities are strings, BF16 has its 16 bits. */
const JsonElement = Schema.Union([Schema.Boolean, Schema.Finite, Schema.String])

type JsonElement = typeof JsonElement.Type

export const DefaultDocument = Schema.Union([
  Schema.Struct({ shape: Schema.Array(Schema.Int), data: Schema.Array(JsonElement) }),
  Schema.Struct({ element: JsonElement }),
])

export type DefaultDocument = typeof DefaultDocument.Type

/** Most elements of a default that is written. Servers fill in a default that clients do not know. */
const maxElements = 1024

/** Undefined for a default that is too large, that is not UTF-8, or of a datatype that this runtime does not have. */
export const write = (datatype: DataType, given: DefaultTensor): DefaultDocument | undefined => {
  if (datatype === "FP16" && typeof Float16Array === "undefined") return undefined
  const values = elements(datatype, given)
  const data = values?.map(written)
  if (data === undefined || !data.every((value) => value !== undefined)) return undefined
  if ("row" in given) return { shape: given.row.shape, data }
  const [element] = data
  return element === undefined ? undefined : { element }
}

/** Undefined for a default that an input with these dims cannot have. */
export const read = (
  datatype: DataType,
  dims: ReadonlyArray<Dim>,
  given: DefaultDocument,
): DefaultTensor | undefined => {
  try {
    if ("element" in given) {
      const element = elementBytes(datatype, parsed(datatype, given.element))
      return element === undefined || dims.includes(-1) ? undefined : { element }
    }
    const { shape, data } = given
    const isFixed = dims.every((dim) => typeof dim === "number") && matches(dims, shape)
    if (!isFixed || data.length > maxElements || elementCount(shape) !== data.length) return undefined
    const all = data.map((value) => elementBytes(datatype, parsed(datatype, value)))
    if (!all.every((one) => one !== undefined)) return undefined
    const bytes = datatype === "BYTES" ? encodeElements(all) : joined(all)
    return { row: new TypedTensor(datatype, shape, bytes) }
  } catch {
    return undefined
  }
}

/** The elements as code has them, or the one that all have; bytes for BYTES. Undefined if there are too many. */
export const elements = (
  datatype: DataType,
  given: DefaultTensor,
): ReadonlyArray<boolean | number | bigint | Uint8Array> | undefined => {
  const tensor =
    "row" in given
      ? given.row
      : new TypedTensor(datatype, [1], datatype === "BYTES" ? encodeElements([given.element]) : given.element)
  if (elementCount(tensor.shape) > maxElements) return undefined
  const values: ReadonlyArray<number | bigint | Uint8Array> = [...tensor.data]
  return datatype === "BOOL" ? values.map((value) => value !== 0) : values
}

const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The text of an element of BYTES; undefined if it is not UTF-8. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return text.decode(bytes)
  } catch {
    return undefined
  }
}

const written = (value: boolean | number | bigint | Uint8Array): JsonElement | undefined => {
  if (value instanceof Uint8Array) return textOf(value)
  return typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value
}

const parsed = (datatype: DataType, value: JsonElement): Element<DataType> => {
  if (typeof value !== "string" || datatype === "BYTES") return value
  return datatype === "INT64" || datatype === "UINT64" ? BigInt(value) : Number(value)
}

const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array => new Uint8Array(parts.flatMap((part) => [...part]))
