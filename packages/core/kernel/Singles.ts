/**
 * Writes FP32 values as JSON, each with the fewest digits that read back to it, followed by a comma. The text equals
 * that of JsonFloats.ts, which writes the rare values: subnormals, NaN, the infinities, and values too close to a
 * rounding border.
 *
 * A value is scaled to 9 digits before the point, as a 64-bit integer with 32 fractional bits: one multiplication,
 * accurate to 2^-31. 9 digits distinguish all FP32 values. Fewer suffice if rounding to them changes the value by less
 * than half of its last place. The decisions are branchless.
 */
import { eightDigits } from "./Arithmetic"
import { end, exponents, factors, powersOfTwo, thresholds } from "./Memory"

const comma: u8 = 0x2c
const minus: u8 = 0x2d
const plus: u8 = 0x2b
const point: u8 = 0x2e
const zero: u8 = 0x30

/** 1 in the last of 9 digits. */
const unit: u64 = 1 << 32

/**
 * Minimum distance from a rounding border. Closer values are left to the host, which checks them by reading them back.
 */
const near: u64 = unit >> 20

/**
 * Which byte comes where, by the decimal exponent from -6 to 8: 0 to 8 are the digits, 9 the point, 10 a zero.
 *
 *   -2   0.0ddddddddd     10 9 10 0 1 2 3 4 5 6 7 8
 *    2   ddd.dddddd       0 1 2 9 3 4 5 6 7 8
 */
const orders = memory.data<u8>([
  10, 9, 10, 10, 10, 10, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 9, 10, 10, 10, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 9, 10,
  10, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 10, 9, 10, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 10, 10, 9, 10, 0, 1, 2,
  3, 4, 5, 6, 7, 8, 10, 10, 10, 10, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 10, 10, 10, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8,
  10, 10, 10, 10, 10, 10, 0, 1, 9, 2, 3, 4, 5, 6, 7, 8, 10, 10, 10, 10, 10, 10, 0, 1, 2, 9, 3, 4, 5, 6, 7, 8, 10, 10,
  10, 10, 10, 10, 0, 1, 2, 3, 9, 4, 5, 6, 7, 8, 10, 10, 10, 10, 10, 10, 0, 1, 2, 3, 4, 9, 5, 6, 7, 8, 10, 10, 10, 10,
  10, 10, 0, 1, 2, 3, 4, 5, 9, 6, 7, 8, 10, 10, 10, 10, 10, 10, 0, 1, 2, 3, 4, 5, 6, 9, 7, 8, 10, 10, 10, 10, 10, 10, 0,
  1, 2, 3, 4, 5, 6, 7, 9, 8, 10, 10, 10, 10, 10, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10, 10,
])

const undecided: u32 = 1_000_000_000

/** Writes the values, and answers how many it has: fewer where it leaves the next one to its host. */
export function writeSingles(source: usize, count: i32, target: usize): i32 {
  const behind = source + (usize(count) << 2)
  let out = target
  let at = source
  for (; at < behind; at += 4) {
    const word = load<u32>(at)
    const size = word & 0x7fff_ffff
    const negative = word >> 31
    const binary = size >> 23
    if (binary - 1 > 253) {
      if (size != 0) break
      // "0," or "-0.0,"
      store<u64>(out, negative ? 0x2c_302e_302d : 0x2c30)
      out += negative ? 5 : 2
      continue
    }
    const fraction = size & 0x7f_ffff
    // Whole numbers below 2^24 have no bits behind their point, and 8 digits at most.
    const places: u32 = 150 - binary
    if (places < 24) {
      const mantissa = fraction | 0x80_0000
      const integer = mantissa >> places
      if (integer << places == mantissa) {
        const digits = eightDigits(integer)
        const zeros = ctz(digits) & ~7
        store<u8>(out, minus)
        out += negative
        store<u64>(out, (digits | 0x3030_3030_3030_3030) >> zeros)
        out += usize(8 - (zeros >> 3))
        store<u8>(out, comma)
        out += 1
        continue
      }
    }
    const beyond = u32(size >= load<u32>(thresholds + (binary << 2)))
    const exponent = i32(load<i8>(exponents + binary)) + beyond
    let digits: u32
    if (fraction == 0) digits = load<u32>(powersOfTwo + (binary << 2))
    else {
      const factor = load<u64>(factors + (binary << 4) + (beyond << 3))
      const half = factor >> 25
      const mantissa = u64(fraction | 0x80_0000)
      const scaled = ((mantissa * (factor >> 32)) << 8) + ((mantissa * (factor & 0xffff_ffff)) >> 24)
      const whole = u32(scaled >> 32)
      const part = scaled & 0xffff_ffff
      // The last two digits, and how far the value is above the next 7 and the next 8 digits.
      const hundreds = whole / 100
      const lastTwo = whole - hundreds * 100
      const last = lastTwo - ((lastTwo * 103) >> 10) * 10
      const above2 = (u64(lastTwo) << 32) | part
      const above1 = (u64(last) << 32) | part
      const up2 = above2 >= 50 * unit
      const up1 = above1 >= 5 * unit
      const far2 = select<u64>(100 * unit - above2, above2, up2)
      const far1 = select<u64>(10 * unit - above1, above1, up1)
      const close = min<u64>(far1 - half + near, far2 - half + near)
      digits = whole + u32(part >> 31)
      digits = select<u32>(whole - last + select<u32>(10, 0, up1), digits, far1 < half)
      digits = select<u32>(whole - lastTwo + select<u32>(100, 0, up2), digits, far2 < half)
      if (u32(close < 2 * near) | u32(half > 50 * unit - near)) {
        digits = decided(scaled, half, exponent, fraction)
      }
      if (digits == undecided) break
    }

    const first = digits / 100_000_000
    const rest = eightDigits(digits - first * 100_000_000)
    const length = 9 - i32(clz(rest) >> 3)
    store<u8>(out, minus)
    out += negative
    if (u32(exponent + 6) > 14) out = writeFar(out, first, rest, length, exponent)
    else {
      const all = i64x2.replace_lane(i64x2.splat((rest << 8) | first), 1, (rest >> 56) | 0xfe00)
      const bytes = i8x16.add(all, i8x16.splat(0x30))
      v128.store(out, i8x16.swizzle(bytes, v128.load(orders + ((exponent + 6) << 4))))
      out += exponent < 0 ? length + 1 - exponent : length > exponent + 1 ? length + 1 : exponent + 1
    }
    store<u8>(out, comma)
    out += 1
  }
  store<u32>(end, u32(out))
  return i32(at - source) >> 2
}

/**
 * Writes a number whose point is outside its digits: with zeros up to 10^21, otherwise with an exponent. Returns the
 * end.
 */
function writeFar(target: usize, first: u32, rest: u64, length: i32, exponent: i32): usize {
  let out = target
  store<u8>(out, zero + u8(first))
  const digits = rest + 0x3030_3030_3030_3030
  if (exponent > 0 && exponent < 21) {
    store<u64>(out, digits, 1)
    v128.store(out, i8x16.splat(zero), 9)
    return out + exponent + 1
  }
  store<u8>(out, point, 1)
  store<u64>(out, digits, 2)
  out += usize(length) + usize(length > 1)
  store<u8>(out, 0x65)
  store<u8>(out, exponent < 0 ? minus : plus, 1)
  out += 2
  const size = exponent < 0 ? -exponent : exponent
  if (size > 9) store<u8>(out++, zero + u8(size / 10))
  store<u8>(out, zero + u8(size % 10))
  return out + 1
}

/**
 * Chooses the digits if 6 may suffice, or if a candidate is close to a rounding border. A candidate exactly at a border
 * is decided only if the factor is exact: such digits read back to the value if the value is even.
 */
function decided(scaled: u64, half: u64, exponent: i32, fraction: u32): u32 {
  const isExact = exponent >= -5 && exponent <= 8
  for (let power: u64 = 1000; power > 0; power /= 10) {
    const step = power * unit
    const above = scaled % step
    const isUp = above >= step / 2
    const far = isUp ? step - above : above
    if (power > 1) {
      const isClose = far - half + near < 2 * near
      if (isClose && !(isExact && far == half)) return undecided
      if (isClose ? (fraction & 1) != 0 : far > half) continue
    }
    return u32((scaled - above) >> 32) + (isUp ? u32(power) : 0)
  }
  return undecided
}
