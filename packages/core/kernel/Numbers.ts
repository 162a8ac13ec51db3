/**
 * Reads many numbers of a JSON array at once in their most common form: digits, an optional fraction and exponent, then
 * a comma or the closing bracket, with optional white space. Stops before other forms, and before numbers too close to
 * a rounding border, which the host reads. Never fails.
 *
 * It examines 32 bytes together. The positions of non-digits determine the point and the end of the number, so that the
 * next number starts before this one is evaluated.
 *
 *   -1.6829419696157930,0.33     the text
 *    ^^               ^          no digits, but for the sign: the point, the end
 *     68294196961579             digits, without the point: 16 of them are an integer in a few steps
 */
import { eightOf, upperProduct } from "./Arithmetic"
import { decimals, end, largestPower, powers } from "./Memory"

const comma: u32 = 0x2c
const minus: u32 = 0x2d
const plus: u32 = 0x2b
const point: u32 = 0x2e
const zero: u32 = 0x30
const closeArray: u32 = 0x5d

/** From its byte 16 - n on, the first n of 16 lanes are set. */
const lanes = memory.data<u8>([
  255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0,
])

/** Factors for an integer of 16 digits, indexed by how many of its digits precede the point (0 to 16). */
const scales = memory.data<f64>([
  1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1,
])

/** Powers of ten, and below which 16 digits have to be for so many more of them to fit into 64 bits. */
const tens = memory.data<u64>([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000])
const rooms = memory.data<u64>([
  10_000_000_000_000_000, 10_000_000_000_000_000, 10_000_000_000_000_000, 10_000_000_000_000_000, 1_000_000_000_000_000,
  100_000_000_000_000, 10_000_000_000_000, 1_000_000_000_000, 100_000_000_000,
])

/** Vectors that are loaded once: as constants they would be put together for each number. */
const vectors = memory.data<u8>([
  48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 255,
  0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 10, 0, 10, 0, 10, 0, 10, 0, 10, 0, 10, 0, 10, 0, 10, 0,
  100, 0, 1, 0, 100, 0, 1, 0, 100, 0, 1, 0, 100, 0, 1, 0, 16, 39, 1, 0, 16, 39, 1, 0, 16, 39, 1, 0, 16, 39, 1, 0,
])

export function readSingles(from: usize, limit: usize, target: usize, most: i32): i32 {
  return readFloats<f32>(from, limit, target, most)
}

export function readDoubles(from: usize, limit: usize, target: usize, most: i32): i32 {
  return readFloats<f64>(from, limit, target, most)
}

/**
 * Reads from a value on, of those that begin before the limit; answers how many, and leaves the end at the delimiter.
 */
function readFloats<Float>(from: usize, limit: usize, target: usize, most: i32): i32 {
  const zeros = v128.load(vectors)
  const nines = v128.load(vectors, 16)
  const lowBytes = v128.load(vectors, 32)
  const weights1 = v128.load(vectors, 48)
  const weights2 = v128.load(vectors, 64)
  const weights4 = v128.load(vectors, 80)
  const behind = target + usize(most) * sizeof<Float>()
  let out = target
  let start = from
  let delimiter = from
  while (out < behind && start < limit) {
    let byte: u32 = load<u8>(start)
    while (isSpace(byte)) byte = load<u8>(++start)
    const negative = u32(byte == minus)
    const low = i8x16.le_u(i8x16.sub(v128.load(start), zeros), nines)
    const high = i8x16.le_u(i8x16.sub(v128.load(start, 16), zeros), nines)
    // The first byte is a digit or the sign, which is looked at below.
    const others = ~(u32(i8x16.bitmask(low)) | (u32(i8x16.bitmask(high)) << 16)) & ~1
    const wholeEnd = ctz(others)
    let numberEnd = wholeEnd
    let points: u32 = 0
    byte = load<u8>(start + wholeEnd)
    if (byte == point) {
      numberEnd = ctz(others & (others - 1))
      if (numberEnd - wholeEnd == 1) break
      byte = load<u8>(start + numberEnd)
      points = 1
    }
    const wholeDigits = wholeEnd - negative
    if (wholeDigits - 1 > 14 || numberEnd > 31) break
    const digits = start + negative
    const lead = load<u8>(digits) - zero
    if (lead - 1 > 8 && (lead != 0 || wholeDigits > 1)) break
    start += numberEnd
    if (byte == comma && !points && wholeDigits <= 8) {
      const whole = u32(eightOf(load<u64>(start - 8) & (u64(-1) << u64(64 - 8 * wholeDigits))))
      if (sizeof<Float>() == 4) store<u32>(out, reinterpret<u32>(f32(whole)) | (negative << 31))
      else store<u64>(out, reinterpret<u64>(f64(whole)) | (u64(negative) << 63))
      out += sizeof<Float>()
      delimiter = start
      start += 1
      continue
    }

    // 16 digits, padded with zeros on the right.
    const count = numberEnd - negative - points
    const around = v128.bitselect(v128.load(digits), v128.load(digits, 1), v128.load(lanes + 16 - wholeDigits))
    const all = v128.and(i8x16.sub(around, zeros), v128.load(lanes + 16 - min<u32>(count, 16)))
    const pairs = i16x8.add(i16x8.mul(v128.and(all, lowBytes), weights1), i16x8.shr_u(all, 8))
    const fours = i32x4.dot_i16x8_s(pairs, weights2)
    const eights = i32x4.dot_i16x8_s(i16x8.narrow_i32x4_u(fours, fours), weights4)
    const both = i64x2.extract_lane(eights, 0)
    const mantissa = (both & 0xffff_ffff) * 100_000_000 + (both >>> 32)

    let exponent = 0
    if ((byte | 0x20) == 0x65) {
      byte = load<u8>(++start)
      const down = byte == minus
      if (down || byte == plus) start += 1
      exponent = load<u8>(start) - zero
      if (u32(exponent) > 9) break
      byte = load<u8>(++start)
      if (byte - zero < 10) {
        exponent = exponent * 10 + i32(byte - zero)
        byte = load<u8>(++start)
      }
      if (exponent > largestPower) break
      if (down) exponent = -exponent
    }

    if (sizeof<Float>() == 4) {
      // Digits beyond the 16th, and errors of rounding, are less than 8 in the last place. That seldom makes a
      // difference.
      const slack = i64(u32(mantissa != 0) | u32(count > 16)) << 3
      const scale = load<f64>(scales + (wholeDigits << 3))
      let least = f64(mantissa - slack) * scale
      let most = f64(mantissa + slack) * scale
      if (exponent != 0) {
        const power = load<f64>(powers + (usize(exponent + largestPower) << 3))
        least *= power
        most *= power
      }
      const bits = reinterpret<u32>(f32(least))
      if (bits != reinterpret<u32>(f32(most))) break
      store<u32>(out, bits | (negative << 31))
    } else {
      let exact = u64(mantissa)
      let scale = i32(wholeDigits) - 16 + exponent
      if (count > 16) {
        const more = count - 16
        if (more > 8 || exact >= load<u64>(rooms + (more << 3))) break
        // The bytes before the end of the digits, but for those in front of them.
        const rest = eightOf(load<u64>(digits + count + points - 8) & (u64(-1) << (64 - 8 * more)))
        exact = exact * load<u64>(tens + (more << 3)) + rest
        scale -= i32(more)
      }
      const bits = nearest(exact, scale)
      if (bits == undecided) break
      store<u64>(out, bits | (u64(negative) << 63))
    }

    while (isSpace(byte)) byte = load<u8>(++start)
    if (byte == comma) {
      out += sizeof<Float>()
      delimiter = start
      start += 1
      continue
    }
    if (byte == closeArray) {
      out += sizeof<Float>()
      delimiter = start
    }
    break
  }
  store<u32>(end, u32(delimiter))
  return i32(out - target) / sizeof<Float>()
}

/** The same for integers of so many bytes, signed or not, that are in range and have 18 digits at most. */
export function readIntegers(from: usize, limit: usize, target: usize, most: i32, width: i32, signed: bool): i32 {
  const zeros = v128.load(vectors)
  const nines = v128.load(vectors, 16)
  // As far as the value has to be shifted up and down again to be what it was.
  const beyond = i64(64 - 8 * width)
  let count = 0
  let out = target
  let start = from
  let delimiter = from
  while (count < most && start < limit) {
    let byte: u32 = load<u8>(start)
    while (isSpace(byte)) byte = load<u8>(++start)
    const negative = u32(byte == minus)
    const others = ~u32(i8x16.bitmask(i8x16.le_u(i8x16.sub(v128.load(start), zeros), nines))) & ~1
    const numberEnd = ctz(others)
    const digits = numberEnd - negative
    const lead = load<u8>(start + negative) - zero
    if (lead > 9 || (lead == 0 && digits > 1)) break
    start += numberEnd
    let value: i64
    if (digits - 1 < 8) value = i64(eightOf(load<u64>(start - 8) & (u64(-1) << (64 - 8 * digits))))
    else {
      value = 0
      for (let at = start - digits; at < start; at++) value = value * 10 + i64(load<u8>(at) - zero)
      // There may be more of them than a vector has.
      let all = digits
      for (; load<u8>(start) - zero < 10 && all < 19; all++) value = value * 10 + i64(load<u8>(start++) - zero)
      if (all > 18) break
    }
    value = (value ^ -i64(negative)) + i64(negative)
    const kept = signed ? (value << beyond) >> beyond : i64((u64(value) << beyond) >> beyond)
    if (kept != value || (!signed && value < 0)) break

    byte = load<u8>(start)
    while (isSpace(byte)) byte = load<u8>(++start)
    if (byte != comma && byte != closeArray) break
    if (width == 1) store<u8>(out, u8(value))
    else if (width == 2) store<u16>(out, u16(value))
    else if (width == 4) store<u32>(out, u32(value))
    else store<i64>(out, value)
    out += width
    count += 1
    delimiter = start
    if (byte == closeArray) break
    start += 1
  }
  store<u32>(end, u32(delimiter))
  return count
}

function isSpace(byte: u32): bool {
  return byte <= 0x20 && (byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09)
}

const undecided: u64 = u64(-1)

/**
 * The bits of the double that is nearest to `mantissa * 10^exponent`, or `undecided`.
 *
 * Eisel and Lemire (Number parsing at a gigabyte per second, 2021): the product with 64 bits of the power, and with 128
 * where that is not enough to tell. Powers beyond the table, and the few cases that remain, are left to the host.
 */
function nearest(mantissa: u64, exponent: i32): u64 {
  if (mantissa == 0) return 0
  if (u32(exponent + largestPower) > u32(2 * largestPower)) return undecided
  const shift = clz(mantissa)
  const factor = mantissa << shift
  const power = decimals + (usize(exponent + largestPower) << 4)
  const powerHigh = load<u64>(power)
  let high = upperProduct(factor, powerHigh)
  let low = factor * powerHigh
  if ((high & 0x1ff) == 0x1ff) {
    const more = upperProduct(factor, load<u64>(power, 8))
    low += more
    if (low < more) high += 1
    if (low == u64(-1) && (exponent < -27 || exponent > 55)) return undecided
  }
  const upper = high >> 63
  const drop = upper + 9
  let value = high >> drop
  let binary = i64(((152_170 + 65_536) * exponent) >> 16) + 63 + i64(upper) - i64(shift) + 1023
  // Exactly half way: to the even one.
  if (low <= 1 && exponent >= -4 && exponent <= 23 && (value & 3) == 1 && value << drop == high) value &= ~1
  value = (value + (value & 1)) >> 1
  if (value >= 1 << 53) {
    value = 1 << 52
    binary += 1
  }
  return (value & 0x000f_ffff_ffff_ffff) | (u64(binary) << 52)
}
