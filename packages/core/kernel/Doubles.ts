/**
 * Writes FP64 values as JSON, in JavaScript's format: the fewest digits that read back to the value and, of those, the
 * nearest; each followed by a comma. The host writes values below 10^-60 or above 10^60, NaN and the infinities, and
 * values too close to a rounding border.
 *
 * A value is scaled to 17 digits before the point, which distinguish all values. The scaling multiplies by a power of
 * ten of 128 bits and keeps 56 bits behind the point. 16 or 15 digits suffice if rounding to them changes the value by
 * less than half of its last place. Fewer digits suffice if those 15 end with zeros.
 */
import { eightDigits, upperProduct } from "./Arithmetic"
import { decimals, end, largestPower, powers } from "./Memory"

const comma: u8 = 0x2c
const minus: u8 = 0x2d
const plus: u8 = 0x2b
const point: u8 = 0x2e
const zero: u8 = 0x30

/** 1 in the last of 17 digits. */
const unit: u64 = 1 << 56

/** Minimum distance from a rounding border; closer values are left to the host. */
const near: u64 = 1 << 8

/** "0.000000" */
const zeros: u64 = 0x3030_3030_3030_2e30

/** Writes the values, and answers how many it has: fewer where it leaves the next one to its host. */
export function writeDoubles(source: usize, count: i32, target: usize): i32 {
  const behind = source + (usize(count) << 3)
  let out = target
  let at = source
  for (; at < behind; at += 8) {
    const word = load<u64>(at)
    const size = word & 0x7fff_ffff_ffff_ffff
    const negative = usize(word >> 63)
    const binary = i32(size >> 52)
    const value = reinterpret<f64>(size)
    if (value < 100_000_000) {
      const whole = i32(value)
      if (f64(whole) == value) {
        if (size == 0) {
          // "0," or "-0.0,"
          store<u64>(out, negative ? 0x2c_302e_302d : 0x2c30)
          out += negative ? 5 : 2
          continue
        }
        const digits = eightDigits(whole)
        const leading = ctz(digits) & ~7
        store<u8>(out, minus)
        out += negative
        store<u64>(out, (digits | 0x3030_3030_3030_3030) >> leading)
        out += usize(8 - (leading >> 3))
        store<u8>(out, comma)
        out += 1
        continue
      }
    }
    // 2^-199 to 2^199 are about 10^-60 to 10^60. It is at most one too low.
    if (u32(binary - 824) > 398) break
    let exponent = ((binary - 1023) * 315_653) >> 20
    exponent += i32(value >= load<f64>(powers + (usize(exponent + 1 + largestPower) << 3)))

    const power = 16 - exponent
    const address = decimals + (usize(power + largestPower) << 4)
    const powerHigh = load<u64>(address)
    const fraction = size & 0x000f_ffff_ffff_ffff
    const mantissa = (fraction | 0x0010_0000_0000_0000) << 11
    const more = upperProduct(mantissa, load<u64>(address, 8))
    const low = mantissa * powerHigh + more
    const high = upperProduct(mantissa, powerHigh) + u64(low < more)
    // By how many bits of the upper word the point is inside of it: 7 to 11.
    const inside = u64(10 - (binary - 1075) - ((power * 217_706) >> 16))
    const whole = high >> inside
    const part = ((high << (64 - inside)) | (low >> inside)) >> 8
    const half = powerHigh >> (inside - 2)

    const hundreds = whole / 100
    const lastTwo = whole - hundreds * 100
    const last = lastTwo - ((lastTwo * 103) >> 10) * 10
    const above2 = (lastTwo << 56) | part
    const above1 = (last << 56) | part
    const up2 = above2 >= 50 * unit
    const up1 = above1 >= 5 * unit
    const far2 = select<u64>(100 * unit - above2, above2, up2)
    const far1 = select<u64>(10 * unit - above1, above1, up1)
    let digits = whole + (part >> 55)
    digits = select<u64>(whole - last + select<u64>(10, 0, up1), digits, far1 < half)
    digits = select<u64>(whole - lastTwo + select<u64>(100, 0, up2), digits, far2 < half)
    // Too close to half of its last place, or to the middle between two of those that it may be rounded to.
    const border = min<u64>(far1 - half + near, far2 - half + near)
    const middle = select<u64>(above1 - 5 * unit, part - unit / 2, far1 < half) + near
    if (border < 2 * near) break
    if (middle < 2 * near) {
      // Exactly there, as values of FP32 often are, is to the even one.
      if (middle != near || power < 0 || power > 27 || low << (56 - inside) != 0) break
      if (far1 >= half) digits = whole + (whole & 1)
      else if (far2 >= half) digits = whole - last + (((whole / 10) & 1) != 0 ? 10 : 0)
    }
    if (fraction == 0) {
      // A power of two is half as far from what is below it.
      const far = far2 < half ? far2 : far1 < half ? far1 : min<u64>(part, unit - part)
      if (far + near > half / 2) break
    }
    if (digits >= 100_000_000_000_000_000) break

    const first = u8(digits / 10_000_000_000_000_000)
    const rest = digits - u64(first) * 10_000_000_000_000_000
    const upper = rest / 100_000_000
    const upperDigits = eightDigits(u32(upper))
    const lowerDigits = eightDigits(u32(rest - upper * 100_000_000))
    const length = lowerDigits != 0 ? 17 - i32(clz(lowerDigits) >> 3) : 9 - i32(clz(upperDigits) >> 3)
    const others = i64x2.replace_lane(i64x2.splat(upperDigits), 1, lowerDigits)
    const bytes = i8x16.add(others, i8x16.splat(0x30))
    store<u8>(out, minus)
    out += negative
    if (exponent >= 0 && exponent < 17) {
      store<u8>(out, zero + first)
      v128.store(out, bytes, 1)
      if (length <= exponent + 1) out += exponent + 1
      else {
        const ramp = i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        v128.store(out + exponent, i8x16.swizzle(bytes, i8x16.add(ramp, i8x16.splat(i8(exponent)))), 2)
        store<u8>(out + exponent, point, 1)
        out += length + 1
      }
    } else if (exponent < 0 && exponent >= -6) {
      store<u64>(out, zeros)
      out += 1 - exponent
      store<u8>(out, zero + first)
      v128.store(out, bytes, 1)
      out += length
    } else out = writeFar(out, first, bytes, length, exponent)
    store<u8>(out, comma)
    out += 1
  }
  store<u32>(end, u32(out))
  return i32(at - source) >> 3
}

/**
 * Writes a number whose point is outside its digits: with zeros up to 10^21, otherwise with an exponent. Returns the
 * end.
 */
function writeFar(target: usize, first: u8, bytes: v128, length: i32, exponent: i32): usize {
  let out = target
  store<u8>(out, zero + first)
  if (exponent > 0 && exponent < 21) {
    v128.store(out, bytes, 1)
    store<u32>(out, 0x3030_3030, 17)
    return out + exponent + 1
  }
  store<u8>(out, point, 1)
  v128.store(out, bytes, 2)
  out += usize(length) + usize(length > 1)
  store<u8>(out, 0x65)
  store<u8>(out, exponent < 0 ? minus : plus, 1)
  out += 2
  const size = exponent < 0 ? -exponent : exponent
  if (size > 9) store<u8>(out++, zero + u8(size / 10))
  store<u8>(out, zero + u8(size % 10))
  return out + 1
}
