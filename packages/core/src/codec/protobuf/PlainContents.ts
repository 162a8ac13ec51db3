/**
 * Decodes typed contents of an input in their usual form, one packed run of its datatype's field, to the bytes of a raw
 * tensor. Floats are views on the received bytes. ProtobufCodec.ts decodes all other forms.
 */
import * as ProtobufReader from "./ProtobufReader.ts"
import { encodeElements } from "../../tensor/TypedTensor.ts"

type Integers = Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array | Uint32Array

/** Decoder of a datatype's run. Returns undefined if the run is not in its usual form. */
interface Contents {
  readonly tag: number
  readonly read: (run: Uint8Array) => Uint8Array | undefined
}

/** The bytes of the contents up to `end`; undefined if they are not in their usual form. */
export const read = (reader: ProtobufReader.ProtobufReader, end: number, datatype: string): Uint8Array | undefined => {
  if (reader.position === end) return noBytes
  if (datatype === "BYTES") return elements(reader, end)
  const contents = fields.get(datatype)
  if (contents === undefined || reader.tag() !== contents.tag) return undefined
  const runEnd = reader.end(end)
  if (reader.failed || runEnd !== end) return undefined
  return contents.read(reader.view(end))
}

const noBytes = new Uint8Array(0)

const fixed =
  (width: number): Contents["read"] =>
  (run) =>
    run.length % width === 0 ? run : undefined

const booleans: Contents["read"] = (run) => (run.every((byte) => byte <= 1) ? run : undefined)

/** The lowest 32 bits of each varint, as the general codec reads them. `isSmall`: they must fit 8 or 16 bits. */
const integers =
  (make: (count: number) => Integers, isSmall: boolean): Contents["read"] =>
  (run) => {
    const count = varints(run)
    if (count === undefined) return undefined
    const target = make(count)
    /** Bits that the datatype has no place for. */
    let cutOff = 0
    let position = 0
    for (let index = 0; index < count; index++) {
      let byte = run[position++] ?? 0
      let value = byte & 0x7f
      for (let shift = 7; byte >= 0x80; shift += 7) {
        byte = run[position++] ?? 0
        if (shift < 32) value |= (byte & 0x7f) << shift
        else if (shift > 63) return undefined
      }
      target[index] = value
      if (isSmall) cutOff |= (target[index] ?? 0) ^ value
    }
    return cutOff === 0 ? new Uint8Array(target.buffer) : undefined
  }

const longs: Contents["read"] = (run) => {
  const count = varints(run)
  if (count === undefined) return undefined
  const words = new Int32Array(2 * count)
  let position = 0
  for (let index = 0; index < words.length; index += 2) {
    let byte = run[position++] ?? 0
    let low = byte & 0x7f
    let high = 0
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = run[position++] ?? 0
      const bits = byte & 0x7f
      if (shift < 32) low |= bits << shift
      if (shift === 28) high = bits >> 4
      else if (shift > 63) return undefined
      else if (shift > 28) high |= bits << (shift - 32)
    }
    words[index] = low
    words[index + 1] = high
  }
  return new Uint8Array(words.buffer)
}

/** How many there are: each ends with the only byte of it that is below 0x80. */
const varints = (run: Uint8Array): number | undefined => {
  let count = 0
  for (let index = 0; index < run.length; index++) if ((run[index] ?? 0) < 0x80) count += 1
  return (run.at(-1) ?? 0) < 0x80 ? count : undefined
}

const elementTag = ProtobufReader.delimited(8)

const elements = (reader: ProtobufReader.ProtobufReader, end: number): Uint8Array | undefined => {
  const found: Array<Uint8Array> = []
  while (reader.position < end) {
    if (reader.tag() !== elementTag) return undefined
    const elementEnd = reader.end(end)
    if (reader.failed) return undefined
    found.push(reader.view(elementEnd))
  }
  return encodeElements(found)
}

const contents = (field: number, read: Contents["read"]): Contents => ({ tag: ProtobufReader.delimited(field), read })

/** Decoders by datatype. The 8- and 16-bit integers share the fields of 32-bit integers. */
const fields: ReadonlyMap<string, Contents> = new Map([
  ["BOOL", contents(1, booleans)],
  [
    "INT8",
    contents(
      2,
      integers((count) => new Int8Array(count), true),
    ),
  ],
  [
    "INT16",
    contents(
      2,
      integers((count) => new Int16Array(count), true),
    ),
  ],
  [
    "INT32",
    contents(
      2,
      integers((count) => new Int32Array(count), false),
    ),
  ],
  ["INT64", contents(3, longs)],
  [
    "UINT8",
    contents(
      4,
      integers((count) => new Uint8Array(count), true),
    ),
  ],
  [
    "UINT16",
    contents(
      4,
      integers((count) => new Uint16Array(count), true),
    ),
  ],
  [
    "UINT32",
    contents(
      4,
      integers((count) => new Uint32Array(count), false),
    ),
  ],
  ["UINT64", contents(5, longs)],
  ["FP32", contents(6, fixed(4))],
  ["FP64", contents(7, fixed(8))],
])
