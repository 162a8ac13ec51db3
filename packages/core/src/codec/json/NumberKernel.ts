/**
 * Converts many numbers at once from text and to text, by WebAssembly, which has 64-bit integers and vectors. Its
 * source is packages/core/kernel. This module has the shared memory, with its tables filled, and the functions of the
 * kernel; NumberWindow.ts and JsonWriter.ts use them. For small tensors, JavaScript is faster than the copy into that
 * memory.
 *
 * Without WebAssembly, as under `node --jitless` or where a page's policy forbids it, there is no kernel, and
 * JavaScript converts all numbers.
 */
import { kernel } from "../../gen/kernel.ts"
import { shortest } from "./JsonFloats.ts"

/** Minimum number of elements to use the kernel. It breaks even between 8 and 16 (docs/performance.md). */
export const worthwhile = 32

export interface NumberKernel {
  /**
   * Text to read, or the written text: the memory from the offset `text`. Text to read must end with a margin of zeros.
   */
  readonly textBytes: Uint8Array<ArrayBuffer>
  readonly text: number
  /** Elements that were read, or elements to write: the memory from the offset `elements`. */
  readonly elementBytes: Uint8Array<ArrayBuffer>
  readonly elements: number
  /** The end address of the last read or write; after a read, the address of the delimiter. */
  readonly end: () => number
  readonly functions: Functions
}

/** All addresses are of the memory. What is read or written is as many elements as the answer says, at most `most`. */
interface Functions {
  readonly readSingles: (from: number, limit: number, target: number, maxCount: number) => number
  readonly readDoubles: (from: number, limit: number, target: number, maxCount: number) => number
  /** Of `width` bytes each. */
  readonly readIntegers: (
    from: number,
    limit: number,
    target: number,
    maxCount: number,
    width: number,
    signed: boolean,
  ) => number
  /** Write each element followed by a comma. Return less than `count` if the caller must write the next element. */
  readonly writeSingles: (source: number, count: number, target: number) => number
  readonly writeDoubles: (source: number, count: number, target: number) => number
}

/** Bytes that are looked at together, and more. */
export const margin = 64

let instance: NumberKernel | undefined
let isTried = false

/** The kernel, created on first use in about 5 ms; undefined without WebAssembly. */
export const numberKernel = (): NumberKernel | undefined => {
  if (isTried) return instance
  isTried = true
  try {
    instance = typeof WebAssembly === "undefined" ? undefined : instantiate()
  } catch {
    // Forbidden, or without vectors.
    instance = undefined
  }
  return instance
}

/** As much of it as is used here: the types of Node and of browsers have it in different places. */
declare const WebAssembly:
  | {
      readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
      readonly Instance: new (module: object) => { readonly exports: Exports }
    }
  | undefined

interface Exports extends Functions, Readonly<Record<Address, { readonly value: number }>> {
  readonly memory: { readonly buffer: ArrayBuffer }
}

type Address =
  | "decimals"
  | "elements"
  | "elementsSize"
  | "end"
  | "exponents"
  | "factors"
  | "largestPower"
  | "powers"
  | "powersOfTwo"
  | "text"
  | "textSize"
  | "thresholds"

const instantiate = (): NumberKernel | undefined => {
  if (WebAssembly === undefined) return undefined
  const bytes = Uint8Array.from(atob(kernel), (character) => character.charCodeAt(0))
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes))
  const { buffer } = exports.memory
  fillPowers(exports)
  fillSingles(exports)
  const end = new Uint32Array(buffer, exports.end.value, 1)
  return {
    textBytes: new Uint8Array(buffer, exports.text.value, exports.textSize.value),
    text: exports.text.value,
    elementBytes: new Uint8Array(buffer, exports.elements.value, exports.elementsSize.value),
    elements: exports.elements.value,
    end: () => end[0] ?? 0,
    functions: exports,
  }
}

/**
 * Each power of ten as a double, and the first 128 bits of it, as Lemire's proof wants them: those of 10^-1 to
 * 10^-27 rounded up.
 */
const fillPowers = ({ memory, largestPower, powers, decimals }: Exports): void => {
  const largest = largestPower.value
  const doubles = new Float64Array(memory.buffer, powers.value, 2 * largest + 1)
  const words = new BigUint64Array(memory.buffer, decimals.value, 4 * largest + 2)
  for (let exponent = -largest; exponent <= largest; exponent++) {
    const index = exponent + largest
    doubles[index] = Number(`1e${exponent}`)
    const power = 5n ** BigInt(Math.abs(exponent))
    const length = BigInt(power.toString(2).length)
    let bits: bigint
    if (exponent >= 0) bits = length > 128n ? power >> (length - 128n) : power << (128n - length)
    else bits = (1n << (length + 127n)) / power + (exponent < -27 ? 0n : 1n)
    words[index * 2] = bits >> 64n
    words[index * 2 + 1] = bits & 0xffff_ffff_ffff_ffffn
  }
}

/**
 * Fills the tables for writing FP32, indexed by the biased exponent of a value. They have the decimal exponent at the
 * start of the binade, and the bits from which on it is one more. For both, they have the factor that scales the
 * mantissa to 9 digits before the point, with 32 + 24 fractional bits. The last table has the digits of the power of
 * two, whose distance to the next lower value is half as large.
 */
const fillSingles = ({ memory, exponents, thresholds, factors, powersOfTwo }: Exports): void => {
  const begins = new Int8Array(memory.buffer, exponents.value, 256)
  const limits = new Uint32Array(memory.buffer, thresholds.value, 256)
  const scales = new BigUint64Array(memory.buffer, factors.value, 512)
  const digits = new Uint32Array(memory.buffer, powersOfTwo.value, 256)
  const single = new Float32Array(1)
  const bits = new Uint32Array(single.buffer)
  for (let binary = 1; binary < 255; binary++) {
    const exponent = Math.floor((binary - 127) * Math.log10(2))
    begins[binary] = exponent
    const power = Number(`1e${exponent + 1}`)
    single[0] = power
    const nearest = bits[0] ?? 0
    const limit = (single[0] ?? 0) < power ? nearest + 1 : nearest
    limits[binary] = limit >>> 23 === binary ? limit : 0x7f80_0000
    for (const beyond of [0, 1]) {
      const places = BigInt(8 - exponent - beyond)
      const shift = BigInt(binary - 150 + 56)
      const numerator = (places > 0n ? 10n ** places : 1n) << (shift > 0n ? shift : 0n)
      const denominator = (places < 0n ? 10n ** -places : 1n) << (shift < 0n ? -shift : 0n)
      scales[binary * 2 + beyond] = numerator / denominator
    }
    bits[0] = binary << 23
    digits[binary] = Number(
      shortest(single[0] ?? 0)
        .toExponential(8)
        .replace(/\.|e.*/g, ""),
    )
  }
}
