/**
 * Decodes the numbers, booleans or strings of a JSON array, flat or nested, from its bytes into the bytes of a tensor.
 * The nesting depth is ignored: only the shape counts. JsonNumber.ts decodes a single number.
 */
import * as DataType from "../../tensor/DataType.ts"
import { InvalidRequest, MalformedRequest } from "../../error/InferenceError.ts"
import { readDouble } from "./JsonNumber.ts"
import { readNumbers } from "./JsonNumbers.ts"
import type { JsonDataType } from "./JsonDataType.ts"
import { integerRanges } from "../../tensor/IntegerRange.ts"
import type { JsonReader } from "./JsonReader.ts"
import { type NumberKernel, numberKernel, worthwhile } from "./NumberKernel.ts"
import { type NumberDataType, NumberWindow } from "./NumberWindow.ts"
import * as SmallMemory from "../../tensor/SmallMemory.ts"

/** Arrays inside arrays; as many, or more, are refused. */
export const maxDepth = 100

export const tooDeep = () =>
  new InvalidRequest({ message: `JSON nesting depth exceeds maximum allowed limit (${maxDepth})` })

/**
 * Reads the array at the reader's position as the content of an input. Validation counts the elements of BYTES, so that
 * errors that come first are told first; other datatypes must have `count` elements.
 */
export const readInput = (reader: JsonReader, datatype: JsonDataType, count: number, name: string): Uint8Array =>
  datatype === "BYTES" ? readStrings(targetOf(reader, datatype, name)) : readElements(reader, datatype, count, name)

/**
 * Reads the array at the reader's position as `count` elements, or the value that stands there by itself as the only
 * one. `name` of the tensor, for messages. Without a kernel it is the same, but slower.
 */
export const readElements = (
  reader: JsonReader,
  datatype: JsonDataType,
  count: number,
  name: string,
  kernel: () => NumberKernel | undefined = numberKernel,
): Uint8Array => {
  // An element and its comma take two bytes, so a shape that promises more is wrong, and is not worth its memory.
  if (count * 2 - 1 > reader.bytes.length - reader.position) {
    reader.skip(true)
    throw new MalformedRequest({ message: tooFew })
  }
  const into = targetOf(reader, datatype, name, kernel)
  switch (datatype) {
    case "BYTES":
      return readStrings(into, count)
    case "FP32":
      return readFloats(into, count, "single")
    case "FP64":
      return readFloats(into, count, "double")
    case "BOOL": {
      const data = SmallMemory.allocate(count)
      walk(into, count, (index) => {
        if (reader.kind() !== "boolean") wrongKind(into, "boolean")
        data[index] = reader.boolean() ? 1 : 0
      })
      return data
    }
    case "INT64":
    case "UINT64":
      return readLong(into, count)
    default: {
      const { min, max } = integerRanges[datatype]
      const bytes = SmallMemory.allocate(count * (DataType.byteWidth(datatype) ?? 1))
      const data = DataType.view(datatype, bytes.buffer, bytes.byteOffset, count)
      const one = (index: number) => {
        const value = readInteger(into)
        if (value === undefined || value < min || value > max) return outOfRange(into)
        data[index] = value
      }
      walkNumbers(into, datatype, bytes, count, one, (index) => {
        const read = readBlock(into, count - index, min, max)
        if (read > 0) data.set(block.subarray(0, read), index)
        return read
      })
      return bytes
    }
  }
}

interface Target {
  readonly reader: JsonReader
  readonly datatype: JsonDataType
  readonly name: string
  /** For many numbers. */
  readonly kernel: () => NumberKernel | undefined
  /** Index of the current element, and its position in the document. */
  index: number
  start: number
}

const targetOf = (reader: JsonReader, datatype: JsonDataType, name: string, kernel = numberKernel): Target => ({
  reader,
  datatype,
  name,
  kernel,
  index: 0,
  start: 0,
})

/** Where numbers are read many at once, on their way to their tensor. */
const block = new Float64Array(1024)

/** Reads integers into the block. Returns 0 if one is out of range; reading them one by one then names it. */
const readBlock = ({ reader }: Target, left: number, min: number, max: number): number => {
  const start = reader.position
  const read = readNumbers(reader, block, Math.min(left, block.length), "integer")
  for (let index = 0; index < read; index++) {
    const value = block[index] ?? 0
    if (value >= min && value <= max) continue
    reader.position = start
    return 0
  }
  return read
}

const readFloats = (target: Target, count: number, kind: "single" | "double"): Uint8Array => {
  const bytes = SmallMemory.allocate(count * (kind === "single" ? 4 : 8))
  const { buffer, byteOffset } = bytes
  const data =
    kind === "single" ? new Float32Array(buffer, byteOffset, count) : new Float64Array(buffer, byteOffset, count)
  const one = (index: number) => {
    data[index] = readFloat(target)
  }
  walkNumbers(target, kind === "single" ? "FP32" : "FP64", bytes, count, one, (index) => {
    const read = readNumbers(target.reader, block, Math.min(count - index, block.length), kind)
    if (read > 0) data.set(block.subarray(0, read), index)
    return read
  })
  return bytes
}

/**
 * Calls `element` at each of `count` elements, through all nesting, but for those that `several` has read: it answers
 * how many they were, up to the next bracket at most. Without a count, it reads as many as there are.
 */
const walk = (
  target: Target,
  count: number | undefined,
  element: (index: number) => void,
  several: (index: number) => number = noKernel,
): void => {
  const { reader } = target
  if (reader.kind() !== "array") {
    target.start = reader.position
    return element(0)
  }
  let depth = 0
  let index = 0
  for (;;) {
    // A value stands here, or the end of an array that has none.
    let byte = reader.bytes[reader.position] ?? 0
    if (byte <= 0x20) byte = reader.peek()
    if (byte === 0x5b) {
      depth += 1
      if (depth >= maxDepth) throw tooDeep()
      reader.position += 1
      if (reader.peek() !== 0x5d) continue
    } else {
      if (index === count) throw new MalformedRequest({ message: tooMany })
      const read = several(index)
      index += read
      if (read === 0) {
        target.index = index
        target.start = reader.position
        element(index)
        index += 1
      }
    }
    byte = reader.bytes[reader.position] ?? 0
    if (byte === 0x2c) {
      reader.position += 1
      continue
    }
    byte = reader.peek()
    while (byte === 0x5d) {
      depth -= 1
      reader.position += 1
      if (depth === 0) {
        if (count !== undefined && index < count) throw new MalformedRequest({ message: tooFew })
        return
      }
      byte = reader.peek()
    }
    if (byte !== 0x2c) reader.fail("Missing a comma or ] after an array element.")
    reader.position += 1
  }
}

/** The same for numbers, many of which the kernel reads into the bytes of their tensor. */
const walkNumbers = (
  target: Target,
  datatype: NumberDataType,
  bytes: Uint8Array,
  count: number,
  element: (index: number) => void,
  several: (index: number) => number,
): void => {
  const kernel = count < worthwhile ? undefined : target.kernel()
  if (kernel === undefined) return walk(target, count, element, several)
  const window = new NumberWindow(kernel, target.reader, datatype, bytes)
  walk(target, count, element, (index) => window.read(index))
}

const noKernel = () => 0

const tooMany = "Unable to parse 'data': Shape does not match true shape of 'data' field"
const tooFew = "Failed to parse 'data' field: shape does not match true shape"

/** A number, NaN or an infinity; anything else is refused. */
const readFloat = (target: Target): number => {
  const { reader } = target
  const value = readDouble(reader)
  if (value !== undefined) return value
  if (reader.kind() !== "number") wrongKind(target, "number")
  const text = reader.numberText(true)
  if (text === "NaN") return Number.NaN
  return text.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

/** Reads an integer of at most 15 digits. If it has more, returns undefined and leaves the reader before it. */
const readInteger = (target: Target): number | undefined => {
  const { reader } = target
  const { bytes } = reader
  let position = reader.position
  let byte = bytes[position] ?? 0
  const negative = byte === 0x2d
  if (negative) byte = bytes[++position] ?? 0
  const first = position
  let value = 0
  for (; byte >= 0x30 && byte <= 0x39; byte = bytes[++position] ?? 0) {
    if (position > first && bytes[first] === 0x30) break
    if (position - first === 15) return undefined
    value = value * 10 + (byte - 0x30)
  }
  if (position === first || byte === 0x2e || byte === 0x65 || byte === 0x45) notInteger(target)
  reader.position = position
  // 0 - 0 is 0: integers have no negative zero.
  return negative ? 0 - value : value
}

/** Reads 64-bit integers as two words each. Uses bigint only if the digits do not fit a double. */
const readLong = (target: Target, count: number): Uint8Array => {
  const { reader } = target
  const bytes = SmallMemory.allocate(count * 8)
  const data = new BigUint64Array(bytes.buffer, bytes.byteOffset, count)
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, count * 2)
  const signed = target.datatype === "INT64"
  const min = signed ? -0x8000_0000_0000_0000n : 0n
  const max = signed ? 0x7fff_ffff_ffff_ffffn : 0xffff_ffff_ffff_ffffn
  const put = (index: number, value: number) => {
    const high = Math.floor(value / 0x1_0000_0000)
    words[index * 2] = value - high * 0x1_0000_0000
    words[index * 2 + 1] = high
  }
  const one = (index: number) => {
    const value = readInteger(target)
    if (value !== undefined) {
      if (value < 0 && !signed) notInteger(target)
      return put(index, value)
    }
    const text = reader.numberText(true)
    if (!/^-?[0-9]+$/.test(text)) notInteger(target)
    // No 64-bit integer has more than 20 characters, and a bigint of a million digits takes long.
    const long = text.length > 20 ? max + 1n : BigInt(text)
    if (long < min || long > max) notInteger(target)
    data[index] = BigInt.asUintN(64, long)
  }
  walkNumbers(target, signed ? "INT64" : "UINT64", bytes, count, one, (index) => {
    const read = readBlock(target, count - index, signed ? -Infinity : 0, Infinity)
    for (let offset = 0; offset < read; offset++) put(index + offset, block[offset] ?? 0)
    return read
  })
  return bytes
}

const readStrings = (target: Target, count?: number): Uint8Array => {
  const { reader } = target
  let data = new Uint8Array(256)
  let view = new DataView(data.buffer)
  let length = 0
  walk(target, count, () => {
    if (reader.kind() !== "string") wrongKind(target, "string")
    const from = reader.position + 1
    const escaped = reader.skipString()
    const to = reader.position - 1
    if (length + 4 + to - from > data.length) {
      const larger = new Uint8Array((length + 4 + to - from) * 2)
      larger.set(data)
      data = larger
      view = new DataView(data.buffer)
    }
    const start = length + 4
    if (escaped) length = reader.unescape(from, to, data, start)
    else {
      data.set(reader.bytes.subarray(from, to), start)
      length = start + to - from
    }
    view.setUint32(start - 4, length - start, true)
  })
  return data.subarray(0, length)
}

const wrongKind = (target: Target, expected: string): never =>
  refuse(target, `attempt to access JSON non-${expected} as ${expected}`)

const notInteger = (target: Target): never =>
  wrongKind(target, target.datatype.startsWith("U") ? "unsigned-integer" : "signed-integer")

/** Negative numbers are a type error for unsigned integers, not a range error. */
const outOfRange = (target: Target): never => {
  const isNegative = target.reader.bytes[target.start] === 0x2d
  return isNegative && target.datatype.startsWith("U") ? notInteger(target) : refuse(target, "integer out of range")
}

/** Fails with the tensor, index and text of an element. A syntax error in the element takes precedence. */
const refuse = ({ reader, name, datatype, index, start }: Target, problem: string): never => {
  reader.position = start
  reader.skip(true)
  const text = reader.text(start, Math.min(reader.position, start + 40))
  const subject = datatype === "BYTES" ? "JSON bytes array" : "'data'"
  const message = `Unable to parse ${subject}: ${problem}: element ${index} of '${name}' is ${text}, expected ${datatype}`
  throw new MalformedRequest({ message })
}
