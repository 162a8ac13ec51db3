/**
 * The memory layout of the kernel. The host writes the tables and the windows, and reads the windows. A window holds
 * the input or output of one call, so that memory does not grow with a tensor. The memory has 4 pages of 64 KiB;
 * constants of the compiler (the small tables in the code) occupy the first 4 KiB.
 */

/** Holds the end address of the text or elements that a call has read or written. */
export const end: usize = 4080

/** Powers of ten for reading, 10^-largestPower to 10^largestPower: the nearest FP64, and the first 128 bits. */
export const largestPower: i32 = 80
export const powers: usize = 4096
export const decimals: usize = powers + 161 * 8

/** Tables by the biased exponent of an FP32 value, for writing it. Singles.ts describes them. */
export const factors: usize = decimals + 161 * 16
export const thresholds: usize = factors + 256 * 16
export const exponents: usize = thresholds + 256 * 4
export const powersOfTwo: usize = exponents + 256

/** Text to read, or written text. The padding before and after it allows reads beyond its ends. */
export const text: usize = 16 * 1024 + 64
export const textSize: i32 = 128 * 1024

/** Elements that were read, or that are to be written. */
export const elements: usize = text + textSize + 64
export const elementsSize: i32 = 64 * 1024
