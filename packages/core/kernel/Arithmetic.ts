/** Arithmetic shared by reading and writing numbers: eight digits at once in a word, and products of 128 bits. */

/** The number that eight digits are, the first in the lowest byte; bytes of 0 in front of them are zeros. */
export function eightOf(word: u64): u64 {
  const pairs = ((word & 0x0f0f_0f0f_0f0f_0f0f) * 2561) >> 8
  const fours = ((pairs & 0x00ff_00ff_00ff_00ff) * 6_553_601) >> 16
  return ((fours & 0x0000_ffff_0000_ffff) * 42_949_672_960_001) >> 32
}

/** Eight digits as bytes, the first in the lowest: by fours, then by pairs, then each. */
export function eightDigits(value: u32): u64 {
  const upper = value / 10_000
  const fours = u64(upper) | (u64(value - upper * 10_000) << 32)
  const hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f
  const pairs = hundreds | ((fours - hundreds * 100) << 16)
  const tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f
  return tens | ((pairs - tens * 10) << 8)
}

/** The upper half of a product of 128 bits. */
export function upperProduct(a: u64, b: u64): u64 {
  const aLow = a & 0xffff_ffff
  const aHigh = a >> 32
  const bLow = b & 0xffff_ffff
  const bHigh = b >> 32
  const middle = aHigh * bLow + ((aLow * bLow) >> 32)
  const other = aLow * bHigh + (middle & 0xffff_ffff)
  return aHigh * bHigh + (middle >> 32) + (other >> 32)
}
