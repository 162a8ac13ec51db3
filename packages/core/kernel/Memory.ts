/**
 * Where the kernel has what: its host writes the tables and the windows, and reads the windows. A window is what goes
 * in or comes out in one call, so that memory does not grow with a tensor. 4 pages of 64 KiB, of which the compiler's
 * own constants (the small tables beside the code) have the first 4 KiB.
 */

/** Where a call leaves the address behind what it has read or written. */
export const end: usize = 4080

/** Powers of ten for reading, 10^-largestPower to 10^largestPower: the nearest FP64, and the first 128 bits. */
export const largestPower: i32 = 80
export const powers: usize = 4096
export const decimals: usize = powers + 161 * 8

/** By the biased exponent of an FP32 value, for writing it. What they hold, Singles.ts says. */
export const factors: usize = decimals + 161 * 16
export const thresholds: usize = factors + 256 * 16
export const exponents: usize = thresholds + 256 * 4
export const powersOfTwo: usize = exponents + 256

/** Text: what is read, or what was written. In front of it and behind it there is room for what is read too much. */
export const text: usize = 16 * 1024 + 64
export const textSize: i32 = 128 * 1024

/** Elements: what was read, or what is to be written. */
export const elements: usize = text + textSize + 64
export const elementsSize: i32 = 64 * 1024
