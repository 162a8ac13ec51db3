/**
 * Writes many FP32 values as JSON at once, separated by commas, each with the fewest digits that read back to it.
 * Writes bytes without intermediate strings. JsonWriter.ts writes NaN and the infinities, and the document.
 *
 * A value has 8 significant digits: fewer if 7 or 6 suffice, or 9 if 8 do not. Digits suffice if their distance from
 * the value is less than half of the value's last place. Both are doubles with an error of at most 2^-50. If they are
 * closer than that, which is rare, a slower method decides.
 */

/** Bytes to reserve for one value, including excess digits that are cut off. */
export const longest = 32

/** Writes `count` values, given also as their bits, at `offset`; returns the end offset. */
export const writeSingles = (
  values: Float32Array,
  bits: Int32Array,
  count: number,
  bytes: Uint8Array,
  view: DataView,
  offset: number,
): number => {
  let end = offset
  for (let index = 0; index < count; index++) {
    if (index > 0) bytes[end++] = comma
    const word = bits[index] ?? 0
    const value = values[index] ?? 0
    const size = Math.abs(value)
    const whole = size | 0
    if (whole === size && size < 2 ** 24 && word !== negativeZero) {
      if (word < 0) bytes[end++] = minus
      end = writeDigits(bytes, view, end, whole)
    } else end = writeSingle(value, word, bytes, view, end)
  }
  return end
}

const writeSingle = (value: number, word: number, bytes: Uint8Array, view: DataView, offset: number): number => {
  const binary = (word >>> 23) & 0xff
  // Zero and subnormal values; infinities and NaN.
  if (binary === 0 || binary === 0xff) return writeSlowly(value, bytes, offset)
  const size = Math.abs(value)
  let exponent = exponents[binary] ?? 0
  if (size >= power10(exponent + 1)) exponent += 1
  // The digits as an integer, and the number of decimals among them.
  let decimals = 7 - exponent
  const exact = size * power10(decimals)
  const far = (reaches[binary] ?? 0) * power10(decimals) * 1.000_001
  // The distance from a power of two to the next lower value is half as large.
  const near = far * ((word & 0x7f_ffff) === 0 ? 0.499_998 : 0.999_998)
  let digits = (exact + 0.5) | 0
  let good = judge(Math.abs(digits - exact), near, far)
  if (good < 0) {
    digits = (exact * 10 + 0.5) | 0
    decimals += 1
    good = judge(Math.abs(digits - exact * 10), near * 10, far * 10)
  } else {
    for (let power = 10; power <= 100 && good > 0; power *= 10) {
      const fewer = (exact / power + 0.5) | 0
      const better = judge(Math.abs(fewer - exact / power), near / power, far / power)
      if (better < 0) break
      good = better
      digits = fewer
      decimals -= 1
    }
    // 6 digits that are good, and end with zeros, are good without them.
    for (let fewer = (digits / 10) | 0; fewer * 10 === digits; fewer = (digits / 10) | 0) {
      digits = fewer
      decimals -= 1
    }
  }
  if (good <= 0) return writeSlowly(value, bytes, offset)
  let end = offset
  if (word < 0) bytes[end++] = minus
  return writeNumber(digits, decimals, bytes, view, end)
}

/** 1 if digits at this distance from the value suffice, -1 if not, 0 if that is too close to call. */
const judge = (distance: number, near: number, far: number): number => (distance < near ? 1 : distance > far ? -1 : 0)

/** As JavaScript writes a number with these digits: with an exponent below 10^-6 and from 10^21 on. */
const writeNumber = (digits: number, decimals: number, bytes: Uint8Array, view: DataView, offset: number): number => {
  let end = offset
  const length = digitCount(digits)
  const exponent = length - 1 - decimals
  if (exponent < -6 || exponent > 20) {
    end = length === 1 ? writeDigits(bytes, view, end, digits) : writeDecimal(digits, length - 1, bytes, view, end)
    bytes[end++] = 0x65
    bytes[end++] = exponent < 0 ? minus : plus
    return writeDigits(bytes, view, end, Math.abs(exponent))
  }
  if (decimals <= 0) {
    end = writeDigits(bytes, view, end, digits)
    for (let zeros = decimals; zeros < 0; zeros++) bytes[end++] = zero
    return end
  }
  if (exponent >= 0) return writeDecimal(digits, decimals, bytes, view, end)
  bytes[end++] = zero
  bytes[end++] = point
  for (let zeros = decimals - length; zeros > 0; zeros--) bytes[end++] = zero
  return writeDigits(bytes, view, end, digits)
}

/** At most 8 of the digits behind the point. */
const writeDecimal = (digits: number, decimals: number, bytes: Uint8Array, view: DataView, offset: number): number => {
  const power = integers[decimals] ?? 1
  const whole = (digits / power) | 0
  const end = writeDigits(bytes, view, offset, whole)
  bytes[end] = point
  return writePlaces(view, end + 1, digits - whole * power, decimals)
}

/** A whole number of at most 9 digits. */
const writeDigits = (bytes: Uint8Array, view: DataView, offset: number, value: number): number => {
  if (value < 10) {
    bytes[offset] = zero + value
    return offset + 1
  }
  if (value < 1e8) return writePlaces(view, offset, value, digitCount(value))
  const first = (value / 1e8) | 0
  bytes[offset] = zero + first
  return writePlaces(view, offset + 1, value - first * 1e8, 8)
}

/** Writes the value, zero-padded to `places` digits, at most 8. Always overwrites 8 bytes. */
const writePlaces = (view: DataView, offset: number, value: number, places: number): number => {
  const all = Math.imul(value, integers[8 - places] ?? 1)
  const upper = (all / 10_000) | 0
  view.setInt32(offset, fours[upper] ?? 0, true)
  view.setInt32(offset + 4, fours[all - upper * 10_000] ?? 0, true)
  return offset + places
}

const writeSlowly = (value: number, bytes: Uint8Array, offset: number): number => {
  const text = slowly(value)
  for (let index = 0; index < text.length; index++) bytes[offset + index] = text.charCodeAt(index)
  return offset + text.length
}

/** Any FP32 value. */
const slowly = (value: number): string => {
  if (Object.is(value, -0)) return "-0.0"
  return value === 0 || !Number.isFinite(value) ? String(value) : String(shortest(value))
}

/** The number of the fewest digits that reads back to a finite FP32 value. */
export const shortest = (value: number): number => {
  for (let precision = 1; precision < 9; precision++) {
    const shorter = Number(value.toPrecision(precision))
    if (Math.fround(shorter) === value) return shorter
  }
  return Number(value.toPrecision(9))
}

const plus = 0x2b
const comma = 0x2c
const minus = 0x2d
const point = 0x2e
const zero = 0x30

const negativeZero = -0x8000_0000

/** Of a whole number of at most 9 digits. */
const digitCount = (value: number): number => {
  if (value >= 1e5) return value >= 1e7 ? (value >= 1e8 ? 9 : 8) : value >= 1e6 ? 7 : 6
  return value >= 100 ? (value >= 1e4 ? 5 : value >= 1000 ? 4 : 3) : value >= 10 ? 2 : 1
}

const integers = Int32Array.from({ length: 10 }, (_, exponent) => 10 ** exponent)

const powers = Float64Array.from({ length: 101 }, (_, index) => Number(`1e${index - 50}`))

/** 10^exponent for -50 to 50, each the nearest double. */
const power10 = (exponent: number): number => powers[exponent + 50] ?? Number.NaN

/** By the biased exponent of a value: the decimal exponent of the power of two that it begins at. */
const exponents = Int8Array.from({ length: 256 }, (_, binary) => Math.floor((binary - 127) * Math.log10(2)))

/** By the biased exponent of a value: half of its last place. */
const reaches = Float64Array.from({ length: 256 }, (_, binary) => 2 ** (binary - 127 - 24))

/** The four digits of 0 to 9999, the first in the lowest byte. */
const fours = Int32Array.from({ length: 10_000 }, (_, value) => {
  const [first, second, third] = [(value / 1000) | 0, ((value / 100) | 0) % 10, ((value / 10) | 0) % 10]
  return 0x30_30_30_30 + first + (second << 8) + (third << 16) + ((value % 10) << 24)
})
