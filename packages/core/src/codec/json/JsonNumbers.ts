/**
 * Reads many JSON numbers at once in their most common form: digits, an optional fraction and exponent, then a comma.
 * It reads four digits at a time, stops before any other form, and never fails. JsonElements.ts reads the other forms
 * one by one with JsonNumber.ts.
 */
import { longDouble, power10 } from "./JsonNumber.ts"
import type { JsonReader } from "./JsonReader.ts"

/** `single` where only the FP32 value nearest to the number's double is wanted: fewer digits decide that. */
export type NumberKind = "integer" | "single" | "double"

/** Bytes that the longest number which is read here may take. */
const longest = 48

/** Copy of the document's end with padding, so that reads of several bytes at once stay within bounds. */
const tail = new Uint8Array(2 * longest)
const tailView = new DataView(tail.buffer)

/**
 * Reads up to `maxCount` numbers into `block` and returns their count. The reader must be at a value. It moves to the
 * comma or bracket after the last number read, or stays if none was read.
 */
export const readNumbers = (reader: JsonReader, block: Float64Array, maxCount: number, kind: NumberKind): number => {
  const { bytes } = reader
  const limit = bytes.length - longest
  const start = reader.position
  const count = start < limit ? scan(reader, bytes, reader.view, 0, start, limit, block, 0, maxCount, kind) : 0
  // It stopped at the limit, or else there is nothing more for it.
  const next = count === 0 ? reader.position : behindComma(bytes, reader.position)
  if (count === maxCount || next < limit) return count
  tail.fill(0)
  tail.set(bytes.subarray(next))
  return scan(reader, tail, tailView, next, 0, bytes.length - next, block, count, maxCount, kind)
}

/** The start of the next value after a comma; the end of the bytes if there is no comma. */
const behindComma = (bytes: Uint8Array, position: number): number => {
  if (bytes[position] !== comma) return bytes.length
  let next = position + 1
  while (bytes[next] === 0x20 || bytes[next] === 0x0a) next += 1
  return next
}

/**
 * Reads numbers from a part of the document, up to its `limit`. `base` is the offset of the part in the document.
 * Returns the count, including the numbers read before.
 */
const scan = (
  reader: JsonReader,
  bytes: Uint8Array,
  view: DataView,
  base: number,
  from: number,
  limit: number,
  block: Float64Array,
  before: number,
  maxCount: number,
  kind: NumberKind,
): number => {
  let position = from
  let count = before
  while (count < maxCount && position < limit) {
    let byte = bytes[position] ?? 0
    const negative = byte === minus
    if (negative) byte = bytes[++position] ?? 0
    if (!isDigit(byte)) break
    let whole = byte - 0x30
    let wholeDigits = 1
    byte = bytes[++position] ?? 0
    if (isDigit(byte)) {
      if (whole === 0) break
      do {
        whole = (whole * 10 + (byte - 0x30)) | 0
        wholeDigits += 1
        byte = bytes[++position] ?? 0
      } while (isDigit(byte) && wholeDigits < 9)
    }

    let value: number = whole
    if (byte !== comma && byte !== closeArray) {
      if (kind === "integer") break
      // Behind the point: 9 digits, not counting zeros at the begin of the number, and 9 more.
      let [high, low, lowDigits, places] = [0, 0, 0, 0]
      if (byte === point) {
        const from = ++position
        if (whole === 0) while (bytes[position] === 0x30 && position < from + 8) position += 1
        let end = position + 9
        let word = view.getInt32(position, true)
        if (areDigits(word)) {
          high = fourDigits(word)
          position += 4
          word = view.getInt32(position, true)
          if (areDigits(word)) {
            high = (high * 10_000 + fourDigits(word)) | 0
            position += 4
          }
        }
        byte = bytes[position] ?? 0
        for (; isDigit(byte) && position < end; byte = bytes[++position] ?? 0) high = (high * 10 + (byte - 0x30)) | 0
        if (isDigit(byte)) {
          end = position + 9
          word = view.getInt32(position, true)
          if (areDigits(word)) {
            low = fourDigits(word)
            position += 4
            word = view.getInt32(position, true)
            if (areDigits(word)) {
              low = (low * 10_000 + fourDigits(word)) | 0
              position += 4
            }
          }
          byte = bytes[position] ?? 0
          for (; isDigit(byte) && position < end; byte = bytes[++position] ?? 0) low = (low * 10 + (byte - 0x30)) | 0
          lowDigits = position - end + 9
        }
        places = position - from
        if (places === 0) break
      }
      let scale = places
      if (byte === 0x65 || byte === 0x45) {
        byte = bytes[++position] ?? 0
        const down = byte === minus
        if (down || byte === plus) byte = bytes[++position] ?? 0
        if (!isDigit(byte)) break
        let exponent = byte - 0x30
        byte = bytes[++position] ?? 0
        if (isDigit(byte)) {
          exponent = exponent * 10 + (byte - 0x30)
          byte = bytes[++position] ?? 0
        }
        scale += down ? exponent : -exponent
      }
      if (byte !== comma && byte !== closeArray) break

      const head = whole * power10(places - lowDigits) + high
      if (lowDigits === 0 && wholeDigits + places <= 15 && scale >= 0 && scale <= 22) value = head / power10(scale)
      else if (kind === "single") {
        if (scale < -80 || scale > 80) break
        // Off by less than 2^-51 of it, which seldom decides between two values of FP32.
        value = (head * power10(lowDigits) + low) * (powers[80 - scale] ?? 0)
        if (Math.fround(value * below) !== Math.fround(value * above)) break
      } else {
        if (wholeDigits + places - lowDigits > 15 || scale < -22 || scale > 22) break
        value = longDouble(head, low, lowDigits, 0 - scale)
        if (Number.isNaN(value)) break
      }
    }
    block[count++] = negative ? -value : value
    reader.position = base + position
    if (byte === closeArray) break
    byte = bytes[++position] ?? 0
    while (byte === 0x20 || byte === 0x0a) byte = bytes[++position] ?? 0
  }
  return count
}

const plus = 0x2b
const comma = 0x2c
const minus = 0x2d
const point = 0x2e
const closeArray = 0x5d

const above = 1 + 2 ** -50
const below = 1 - 2 ** -50

/** 10^-80 to 10^80, each the nearest double. */
const powers = Float64Array.from({ length: 161 }, (_, index) => Number(`1e${index - 80}`))

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39

/** Whether four bytes are all digits: 3 above, and no more than 9 below. */
const areDigits = (word: number): boolean =>
  (((word & 0xf0f0f0f0) ^ 0x30303030) | (((word + 0x06060606) & 0xf0f0f0f0) ^ 0x30303030)) === 0

/** The number that they are, the first in the lowest byte: pairs of digits, and then the pair of those. */
const fourDigits = (word: number): number =>
  Math.imul((Math.imul(word & 0x0f0f0f0f, 10 * 2 ** 8 + 1) >>> 8) & 0x00ff00ff, 100 * 2 ** 16 + 1) >>> 16
