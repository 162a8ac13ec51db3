/**
 * Converts the bytes of a JSON number to the nearest double. Most numbers are exact in double arithmetic, and most
 * others in twice its precision. `Number` converts the rest, at several times the cost. FP32 is the float nearest to
 * that double, as in other JSON parsers.
 */
import type { JsonReader } from "./JsonReader.ts"

/**
 * The number at the reader's position; undefined, with nothing read, where no digit stands there. Its first 15 digits
 * are an integer, the next 9 another one; numbers with more digits, or with an exponent beyond 22, take the long way.
 */
export const readDouble = (reader: JsonReader): number | undefined => {
  const { bytes } = reader
  const start = reader.position
  let position = start
  let byte = bytes[position] ?? 0
  const negative = byte === 0x2d
  if (negative) byte = bytes[++position] ?? 0
  if (byte < 0x30 || byte > 0x39) return undefined

  // Three accumulators that stay 32-bit integers: digits 1 to 9, 10 to 15 and 16 to 24.
  let [first, second, third, digits, exponent] = [0, 0, 0, 0, 0]
  let point = false
  const leadingZero = byte === 0x30
  if (leadingZero) byte = bytes[++position] ?? 0
  for (;;) {
    const digit = byte - 0x30
    if (digit >= 0 && digit <= 9) {
      if (leadingZero && !point) break
      if (digits < 9) first = (first * 10 + digit) | 0
      else if (digits < 15) second = (second * 10 + digit) | 0
      else if (digits < 24) third = (third * 10 + digit) | 0
      if (first !== 0) digits += 1
      if (point) exponent -= 1
    } else if (byte === 0x2e && !point) {
      point = true
      const next = bytes[position + 1] ?? 0
      if (next < 0x30 || next > 0x39) reader.fail("Miss fraction part in number.", position + 1)
    } else break
    byte = bytes[++position] ?? 0
  }
  if (byte === 0x65 || byte === 0x45) {
    byte = bytes[++position] ?? 0
    const down = byte === 0x2d
    if (down || byte === 0x2b) byte = bytes[++position] ?? 0
    if (byte < 0x30 || byte > 0x39) reader.fail("Miss exponent in number.", position)
    let power = 0
    for (; byte >= 0x30 && byte <= 0x39; byte = bytes[++position] ?? 0)
      power = Math.min(power * 10 + (byte - 0x30), 99_999)
    exponent += down ? -power : power
  }
  reader.position = position

  if (digits <= 24 && exponent >= -22 && exponent <= 22) {
    let value: number
    if (digits <= 15) {
      const mantissa = digits <= 9 ? first : first * power10(digits - 9) + second
      value = exponent < 0 ? mantissa / power10(-exponent) : mantissa * power10(exponent)
    } else value = longDouble(first * 1e6 + second, third, digits - 15, exponent)
    if (!Number.isNaN(value)) return negative ? -value : value
  }
  const value = Number(reader.text(start, position))
  if (!Number.isFinite(value)) reader.fail("Number too big to be stored in double.", start)
  return value
}

const powers = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))

/** 10^exponent for 0 to 22, all of which doubles hold exactly. */
export const power10 = (exponent: number): number => powers[exponent] ?? 1

/**
 * Computes `(head * 10^tailDigits + tail) * 10^exponent` to the nearest double, or NaN if that is too close to call.
 *
 * Uses double-double arithmetic: a double and its rounding error (Dekker, 1971), accurate to more than 2^-100 of the
 * value. If adding or subtracting 2^-98 of the value does not change the rounded sum, the sum is the nearest double.
 */
export const longDouble = (head: number, tail: number, tailDigits: number, exponent: number): number => {
  const product = head * power10(tailDigits)
  const sum = product + tail
  const rest = productError(head, power10(tailDigits), product) + (tail - (sum - product))
  const power = power10(Math.abs(exponent))
  let value: number
  let error: number
  if (exponent < 0) {
    value = sum / power
    const back = value * power
    error = (sum - back - productError(value, power, back) + rest) / power
  } else {
    value = sum * power
    error = productError(sum, power, value) + rest * power
  }
  const slack = value * 2 ** -98
  const nearest = value + (error - slack)
  return nearest === value + (error + slack) ? nearest : Number.NaN
}

/** `a * b - product`, exactly. */
const productError = (a: number, b: number, product: number): number => {
  const aHigh = upperHalf(a)
  const bHigh = upperHalf(b)
  const aLow = a - aHigh
  const bLow = b - bHigh
  return aHigh * bHigh - product + aHigh * bLow + aLow * bHigh + aLow * bLow
}

/** The upper 26 bits of a double's 53. */
const upperHalf = (value: number): number => {
  const scaled = value * 0x800_0001
  return scaled - (scaled - value)
}
