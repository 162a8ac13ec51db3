/** Floats that the kernel writes have the text that JavaScript gives them, to the last digit. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { longest, writeSingles } from "./JsonFloats.ts"
import { JsonWriter } from "./JsonWriter.ts"
import { numberKernel, worthwhile } from "./NumberKernel.ts"

const decoder = new TextDecoder()

const written = (data: Float32Array | Float64Array): string => {
  const writer = new JsonWriter()
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  const datatype = data instanceof Float32Array ? "FP32" : "FP64"
  writer.elements({ name: "Y", datatype, shape: [data.length], bytes })
  return decoder.decode(writer.written())
}

const withoutKernel = (data: Float32Array): string => {
  const bytes = new Uint8Array((data.length + 1) * longest)
  const words = new Int32Array(data.buffer, data.byteOffset, data.length)
  const end = writeSingles(data, words, data.length, bytes, new DataView(bytes.buffer), 0)
  return decoder.decode(bytes.subarray(0, end))
}

const agree = (data: Float32Array | Float64Array) => {
  const expected =
    data instanceof Float32Array
      ? withoutKernel(data)
      : Array.from(data, (value) => (Object.is(value, -0) ? "-0.0" : String(value))).join()
  const actual = written(data)
  if (actual === expected) return
  const texts = expected.split(",")
  for (const [index, text] of actual.split(",").entries()) assert.strictEqual(text, texts[index], String(data[index]))
}

const many = { minLength: worthwhile, maxLength: 100 }

const ofWords = (words: Uint32Array) => new Float32Array(words.buffer)

describe("FP32 values through the kernel", () => {
  it("have a kernel", () => assert.isDefined(numberKernel()))

  it("are written as JavaScript writes them: any bits", () => {
    fc.assert(fc.property(fc.uint32Array(many).map(ofWords), agree), { numRuns: 2_000 })
  })

  it("few digits, and halves of them, of any size", () => {
    const short = fc.tuple(
      fc.integer({ min: -99_999_999, max: 99_999_999 }),
      fc.constantFrom(1, 2, 4, 8, 10, 100, 256, 512, 1000, 1024, 4096),
      fc.integer({ min: -44, max: 30 }),
    )
    const values = fc
      .array(short, many)
      .map((some) => Float32Array.from(some, ([digits, part, exponent]) => Number(`${digits / part}e${exponent}`)))
    fc.assert(fc.property(values, agree), { numRuns: 1_000 })
  })

  it("every 4001st of them all", () => {
    const words = new Uint32Array(Math.ceil(0x7f80_0000 / 4001)).map((_, index) => index * 4001)
    agree(ofWords(words))
  })

  it("neighbours of every power of two and ten, of either sign, and values that are not numbers", () => {
    const edges: Array<number> = [0, -0, Number.NaN, Infinity, -Infinity]
    for (let exponent = -149; exponent < 128; exponent++) edges.push(2 ** exponent)
    for (let exponent = -45; exponent < 39; exponent++) {
      for (const digits of [1, 9.999999, 9.9999995, 5, 2.5, 1.0000001]) edges.push(Number(`${digits}e${exponent}`))
    }
    const words = new Uint32Array(Float32Array.from(edges).buffer)
    for (let step = -9; step < 10; step++) agree(ofWords(words.map((word) => word + step)))
    for (let step = -9; step < 10; step++) agree(ofWords(words.map((word) => (word + step) | 0x8000_0000)))
  })

  it("whole numbers around 2^24, above which not each of them is a value", () => {
    for (let power = 20; power < 31; power++) {
      agree(Float32Array.from({ length: 600 }, (_, index) => 2 ** power - 300 + index))
    }
  })

  it("as many as there are, wherever a window ends, and wherever they begin in memory", () => {
    for (const length of [31, 32, 33, 4095, 4096, 4097, 8192, 10_000]) {
      // Each 1000th is left to JavaScript.
      const data = Float32Array.from({ length }, (_, index) => (index % 1000 === 999 ? 1e-45 : index / 7))
      assert.strictEqual(written(data), withoutKernel(data), String(length))
      const shifted = new Uint8Array(length * 4 + 1)
      shifted.set(new Uint8Array(data.buffer), 1)
      const writer = new JsonWriter()
      writer.ascii("[")
      writer.elements({ name: "Y", datatype: "FP32", shape: [length], bytes: shifted.subarray(1) })
      writer.ascii("]")
      assert.strictEqual(decoder.decode(writer.written()), `[${withoutKernel(data)}]`)
    }
  })
})

describe("FP64 values through the kernel", () => {
  it("are written as JavaScript writes them: any bits, and any that are not far from 1", () => {
    const near = fc
      .tuple(fc.bigInt({ min: 0n, max: 2n ** 52n - 1n }), fc.integer({ min: 1023 - 210, max: 1023 + 210 }), fc.nat(1))
      .map(([fraction, binary, sign]) => (BigInt(sign) << 63n) | (BigInt(binary) << 52n) | fraction)
    const bits = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), near, near)
    const values = fc.array(bits, many).map((words) => new Float64Array(BigUint64Array.from(words).buffer))
    fc.assert(fc.property(values, agree), { numRuns: 2_000 })
  })

  it("values of FP32, which often end in the middle between two digits", () => {
    const values = fc.uint32Array(many).map((words) => Float64Array.from(ofWords(words)))
    fc.assert(fc.property(values, agree), { numRuns: 1_000 })
    for (const size of [1, 10, 100, 1000, 1e4]) {
      agree(Float64Array.from({ length: 5000 }, (_, index) => Math.fround(size * Math.sin(index))))
    }
  })

  it("few digits, and fractions of them, of any size", () => {
    const short = fc.tuple(
      fc.integer({ min: -999_999_999, max: 999_999_999 }),
      fc.constantFrom(1, 3, 8, 10, 100, 256, 1000, 1024, 65_536, 2 ** 20, 2 ** 30),
      fc.integer({ min: -70, max: 70 }),
    )
    const values = fc
      .array(short, many)
      .map((some) => Float64Array.from(some, ([digits, part, exponent]) => Number(`${digits / part}e${exponent}`)))
    fc.assert(fc.property(values, agree), { numRuns: 1_000 })
  })

  it("neighbours of every power of two and ten, integers of any size, and values that are not numbers", () => {
    const edges: Array<number> = [0, -0, Number.NaN, Infinity, -Infinity, 99_999_999, 100_000_000, 2 ** 53 - 1]
    for (let exponent = -1074; exponent < 1024; exponent++) edges.push(2 ** exponent)
    for (let exponent = -323; exponent < 309; exponent++) {
      for (const digits of [1, 9.99999999999999, 5, 2.5]) edges.push(Number(`${digits}e${exponent}`))
    }
    const words = new BigUint64Array(Float64Array.from(edges).buffer)
    for (let step = -4n; step < 5n; step++) {
      agree(new Float64Array(words.map((word) => word + step).buffer))
      agree(new Float64Array(words.map((word) => (word + step) | (1n << 63n)).buffer))
    }
    for (let power = 20; power < 70; power++) {
      agree(Float64Array.from({ length: 100 }, (_, index) => 2 ** power - 50 + index))
    }
  })

  it("as many as there are, wherever a window ends", () => {
    for (const length of [31, 32, 33, 4095, 4096, 4097, 9_000]) {
      agree(Float64Array.from({ length }, (_, index) => (index % 1000 === 999 ? 1e-300 : -index / 7)))
    }
  })
})
