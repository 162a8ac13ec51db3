/** A tensor as the page handles it: without the batch dimension, and its bytes only when it is sent. */
import { Invalid } from "../Invalid.ts"
import { isNumeric, kindOf, type Numbers, rowOf } from "./Datatype.ts"
import { fromBf16, fromFp16, toBf16, toFp16 } from "./HalfFloat.ts"

export type Data = Numbers | ReadonlyArray<Uint8Array>

export interface Tensor {
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  /** FP16 and BF16 as numbers of 32 bits; of BYTES a list. */
  readonly data: Data
}

/** Most elements of a tensor that the page makes. */
export const maxElements = 16_777_216

export const elementCount = (shape: ReadonlyArray<number>): number => shape.reduce((count, extent) => count * extent, 1)

/** Refuses a shape that is too large for the page, before anything is made of it. */
export const checkCount = (shape: ReadonlyArray<number>): number => {
  const count = elementCount(shape)
  if (count > maxElements) throw new Invalid(`[${shape.join(", ")}] has more than ${maxElements} elements`)
  return count
}

export const ofText = (text: string): Tensor => ofBytes(new TextEncoder().encode(text))

export const ofBytes = (bytes: Uint8Array): Tensor => ({ datatype: "BYTES", shape: [1], data: [bytes] })

/** Makes a tensor of numbers, which must be in the range of the datatype. */
export const ofNumbers = (
  datatype: string,
  shape: ReadonlyArray<number>,
  values: ArrayLike<number | bigint>,
): Tensor => {
  const data = rowOf(datatype).array(values.length)
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    for (let index = 0; index < values.length; index++) data[index] = BigInt(values[index] ?? 0)
  } else {
    for (let index = 0; index < values.length; index++) data[index] = Number(values[index] ?? 0)
  }
  return { datatype, shape, data }
}

/** Numbers of a tensor, those of 64 bits rounded; none of BYTES. */
export const numbersOf = ({ data }: Tensor): ArrayLike<number> => {
  if (isList(data)) return []
  return data instanceof BigInt64Array || data instanceof BigUint64Array ? Array.from(data, Number) : data
}

export const isList = (data: Data): data is ReadonlyArray<Uint8Array> => Array.isArray(data)

/** The bytes of the binary tensor extension. */
export const toBytes = ({ datatype, data }: Tensor): Uint8Array<ArrayBuffer> => {
  if (isList(data)) return joined(data)
  if (datatype === "FP16") return halves(data, toFp16)
  if (datatype === "BF16") return halves(data, toBf16)
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice()
}

const halves = (data: Numbers, convert: (value: number) => number): Uint8Array<ArrayBuffer> => {
  const bits = new Uint16Array(data.length)
  for (let index = 0; index < data.length; index++) bits[index] = convert(Number(data[index]))
  return new Uint8Array(bits.buffer)
}

/** Each element after its length, as 4 bytes. */
const joined = (elements: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(elements.reduce((size, { length }) => size + 4 + length, 0))
  const view = new DataView(bytes.buffer)
  let offset = 0
  for (const element of elements) {
    view.setUint32(offset, element.length, true)
    bytes.set(element, offset + 4)
    offset += 4 + element.length
  }
  return bytes
}

/** Reads the bytes of the binary tensor extension. */
export const fromBytes = (datatype: string, shape: ReadonlyArray<number>, bytes: Uint8Array): Tensor => {
  if (!isNumeric(datatype)) return { datatype, shape, data: split(bytes) }
  const { width, array } = rowOf(datatype)
  const length = Math.floor(bytes.length / width)
  if (width === 2 && kindOf(datatype) === "float") {
    const convert = datatype === "FP16" ? fromFp16 : fromBf16
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const data = Float32Array.from({ length }, (_, index) => convert(view.getUint16(2 * index, true)))
    return { datatype, shape, data }
  }
  const data = array(length)
  new Uint8Array(data.buffer).set(bytes.subarray(0, length * width))
  return { datatype, shape, data }
}

const split = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const elements: Array<Uint8Array> = []
  for (let offset = 0; offset + 4 <= bytes.length;) {
    const length = view.getUint32(offset, true)
    elements.push(bytes.subarray(offset + 4, offset + 4 + length))
    offset += 4 + length
  }
  return elements
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The text of bytes; undefined if they are not UTF-8. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** The shortest decimal number that is this element. */
export const numberText = (datatype: string, value: number | bigint): string => {
  if (typeof value === "bigint" || !Number.isFinite(value) || Number.isInteger(value)) return String(value)
  if (datatype === "FP64" || kindOf(datatype) !== "float") return String(value)
  const round = rounding[datatype] ?? Math.fround
  const rounded = round(value)
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (round(short) === rounded) return String(short)
  }
  return String(Number(value.toPrecision(9)))
}

const rounding: Readonly<Record<string, (value: number) => number>> = { FP16: toFp16, BF16: toBf16 }
