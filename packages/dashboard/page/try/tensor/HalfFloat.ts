/** Floating-point numbers of 16 bits. Older browsers have no `Float16Array`, and none has an array of BF16. */

const float = new Float32Array(1)
const bits = new Uint32Array(float.buffer)

/** The number that the 16 bits of an FP16 are. */
export const fromFp16 = (half: number): number => {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >> 10) & 0x1f
  const fraction = half & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** The 16 bits of the nearest FP16; of two as near, the even one. */
export const toFp16 = (value: number): number => {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
  const size = Math.abs(value)
  if (Number.isNaN(value)) return 0x7e00
  if (size >= 65520) return sign | 0x7c00
  if (size < 2 ** -14) return sign | evenly(size * 2 ** 24)
  const exponent = exponentOf(size)
  // A fraction that is rounded up to 1024 carries into the exponent, as it must.
  return sign | (((exponent + 15) << 10) + evenly((size / 2 ** exponent - 1) * 1024))
}

/** The power of two that a normal number starts with. */
const exponentOf = (size: number): number => {
  const exponent = Math.floor(Math.log2(size))
  if (2 ** exponent > size) return exponent - 1
  return 2 ** (exponent + 1) <= size ? exponent + 1 : exponent
}

const evenly = (value: number): number => {
  const floor = Math.floor(value)
  const rest = value - floor
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor
}

/** The number that the 16 bits of a BF16 are: the upper half of an FP32. */
export const fromBf16 = (half: number): number => {
  bits[0] = half << 16
  return float[0] ?? 0
}

/** The 16 bits of the nearest BF16; of two as near, the even one. */
export const toBf16 = (value: number): number => {
  if (Number.isNaN(value)) return 0x7fc0
  float[0] = value
  const all = bits[0] ?? 0
  return ((all + 0x7fff + ((all >>> 16) & 1)) >>> 16) & 0xffff
}
