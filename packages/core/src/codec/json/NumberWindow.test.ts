/**
 * Numbers read by the kernel: the values equal those of JavaScript, and the same texts are rejected with the same
 * messages.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readElements } from "./JsonElements.ts"
import type { JsonDataType } from "./JsonDataType.ts"
import { JsonReader } from "./JsonReader.ts"
import { numberKernel, worthwhile } from "./NumberKernel.ts"

const encoder = new TextEncoder()

const datatypes = ["FP32", "FP64", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"] as const

/** The elements and the reader's position after them; or the error and its position. */
const outcome = (text: string, datatype: JsonDataType, count: number, kernel = numberKernel) => {
  const reader = new JsonReader(encoder.encode(text), "request")
  try {
    const elements = readElements(reader, datatype, count, "X", kernel)
    return { elements, position: reader.position }
  } catch (error) {
    return { message: error instanceof Error ? error.message : error, position: reader.position }
  }
}

const withoutKernel = () => undefined

const agree = (text: string, datatype: JsonDataType, count: number) =>
  assert.deepStrictEqual(
    outcome(text, datatype, count),
    outcome(text, datatype, count, withoutKernel),
    `${datatype}: ${text.slice(0, 2000)}`,
  )

const bytes = (data: Float32Array | Float64Array) => new Uint8Array(data.buffer)

/** Asserts that the elements equal those of JSON.parse. */
const parsed = (texts: ReadonlyArray<string>) => {
  const values: Array<number> = JSON.parse(`[${texts.join()}]`)
  const text = `[${texts.join()}]`
  assert.deepStrictEqual(outcome(text, "FP64", texts.length), {
    elements: bytes(Float64Array.from(values)),
    position: text.length,
  })
  assert.deepStrictEqual(outcome(text, "FP32", texts.length), {
    elements: bytes(Float32Array.from(values)),
    position: text.length,
  })
}

const many = { minLength: worthwhile, maxLength: 64 }

const digits = (minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom(..."0123456789"), { minLength, maxLength }).map((some) => some.join(""))

/** Any valid JSON number within the range of a double, of any length. */
const written = fc
  .record({
    sign: fc.constantFrom("", "-"),
    whole: fc.oneof(
      fc.constantFrom("0", "1", "7"),
      digits(0, 24).map((rest) => `3${rest}`),
    ),
    zeros: fc.nat(20),
    fraction: fc.option(digits(1, 25)),
    exponent: fc.oneof(
      fc.constant(""),
      fc
        .tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-", "0", "-0", "00"), fc.nat(99))
        .map((parts) => parts.join("")),
      fc.constantFrom("e250", "e-310", "e-330", "e-400", "e+007"),
    ),
  })
  .map(({ sign, whole, zeros, fraction, exponent }) => {
    const point = fraction === null ? "" : `.${"0".repeat(zeros)}${fraction}`
    return `${sign}${whole}${point}${exponent}`
  })

const single = (pattern: number) => new Float32Array(Uint32Array.of(pattern).buffer)[0] ?? 0
const double = (pattern: bigint) => new Float64Array(BigUint64Array.of(pattern).buffer)[0] ?? 0

const singles = fc.nat(0xffff_ffff).map(single).filter(Number.isFinite)
const doubles = fc
  .bigInt({ min: 0n, max: 2n ** 64n - 1n })
  .map(double)
  .filter(Number.isFinite)

/** Exactly halfway between two values, and next to it, where one digit far behind decides. */
const halfway = fc.oneof(
  fc
    .tuple(fc.integer({ min: 0x2000_0000, max: 0x6000_0000 }), fc.constantFrom("", "1", "00000001"))
    .map(([pattern, more]) => {
      // oxlint-disable-next-line number-arg-out-of-range -- up to 100 digits, since ES2018
      const text = ((single(pattern) + single(pattern + 1)) / 2).toFixed(60)
      return text.includes("e") ? "0.5" : text.replace(/0+$/, "").replace(/\.$/, ".0") + more
    }),
  fc
    .tuple(fc.bigInt({ min: 2n ** 52n, max: 2n ** 53n - 1n }), fc.nat(20), fc.constantFrom(-1n, 0n, 1n))
    .chain(([mantissa, shift, beside]) => {
      const large = String((2n * mantissa + 1n) * 2n ** BigInt(shift) + beside)
      const small = String((2n * mantissa + 1n) * 5n ** BigInt(shift) + beside)
      return fc.constantFrom(large, `${large}.0`, `${small}e-${shift}`, `0.${small}`, `-0.000${large}`)
    }),
)

const number = fc.oneof(written, halfway, singles.map(String), doubles.map(String), fc.maxSafeInteger().map(String))

describe("the kernel", () => {
  it("is there", () => assert.isDefined(numberKernel()))

  it("reads every FP32 and FP64 as JSON.parse does: any digits, any exponent, halfway cases", () => {
    const finite = number.filter((text) => Number.isFinite(Number(text)))
    fc.assert(fc.property(fc.array(finite, many), parsed), { numRuns: 1_000 })
  })

  it("reads back every double that JavaScript writes, and every single with the digits that toPrecision gives it", () => {
    fc.assert(fc.property(fc.array(doubles.map(String), many), parsed), { numRuns: 500 })
    const shorter = fc
      .tuple(singles, fc.integer({ min: 1, max: 21 }))
      .map(([value, precision]) => value.toPrecision(precision))
    fc.assert(fc.property(fc.array(shorter, many), parsed), { numRuns: 500 })
  })

  it("reads values next to every power of two and of ten", () => {
    const texts: Array<string> = []
    for (let exponent = -1074; exponent < 1024; exponent++) {
      const bits = new BigUint64Array(Float64Array.of(2 ** exponent).buffer)[0] ?? 0n
      for (const step of [-1n, 0n, 1n]) texts.push(String(double(bits + step)))
    }
    for (let exponent = -320; exponent < 309; exponent++) {
      texts.push(`1e${exponent}`, `9.999999999999999e${exponent - 1}`, `-1.0000000000000002e${exponent}`)
    }
    parsed(texts)
  })

  it("answers as JavaScript does to whatever stands in an array, of every datatype", () => {
    const separator = fc.constantFrom(",", ",", ",", ", ", ",\n  ", " , ", ",\t\r\n", "],[", "]\n, [", ",[", "],", "")
    const integer = fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -300, max: 300 })).map(String)
    const long = fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }).map(String)
    const other = fc.constantFrom(
      "-0",
      "00",
      "-",
      "1.",
      ".5",
      "1e",
      "NaN",
      "-Infinity",
      "Inf",
      "true",
      '"1"',
      "{}",
      "[]",
    )
    const mutated = fc
      .tuple(number, fc.nat(), fc.constantFrom(..."0123456789+-.eE x,][\u0000é"), fc.nat(2))
      .map(([text, at, character, cut]) => {
        const from = at % (text.length + 1)
        return text.slice(0, from) + character + text.slice(from + cut)
      })
    const element = fc.oneof(
      { weight: 300, arbitrary: integer },
      { weight: 40, arbitrary: number },
      { weight: 10, arbitrary: long },
      { weight: 3, arbitrary: other },
      { weight: 3, arbitrary: mutated },
    )
    const array = fc
      .array(fc.tuple(element, fc.oneof({ weight: 30, arbitrary: fc.constant(",") }, separator)), many)
      .map((parts) => parts.flat().slice(0, -1).join(""))
    fc.assert(
      fc.property(
        array,
        fc.constantFrom(...datatypes),
        fc.integer({ min: worthwhile, max: 66 }),
        (text, datatype, count) => {
          for (const count of [worthwhile, text.split(",").length]) {
            agree(`[${text}]`, datatype, count)
            agree(`[[${text}]] , 1`, datatype, count)
            agree(`[${text}`, datatype, count)
          }
          agree(`[${text}]`, datatype, count)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it("reads integers to the ends of their ranges, and names the first that is beyond", () => {
    for (const datatype of datatypes) {
      if (datatype.startsWith("F")) continue
      const bits = BigInt(datatype.replace(/\D+/, ""))
      const signed = datatype.startsWith("I")
      const [min, max] = signed ? [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n] : [0n, 2n ** bits - 1n]
      const good = Array.from({ length: 40 }, (_, index) => [min, max, 0n, 7n][index % 4] ?? 0n)
      const text = `[${good.join()}]`
      const read = outcome(text, datatype, good.length)
      assert(read.elements !== undefined, datatype)
      const view = new DataView(read.elements.buffer, read.elements.byteOffset)
      for (const [index, value] of good.entries()) {
        let raw = 0n
        for (let byte = 0; byte < Number(bits) / 8; byte++) {
          raw |= BigInt(view.getUint8((index * Number(bits)) / 8 + byte)) << BigInt(8 * byte)
        }
        assert.strictEqual(signed ? BigInt.asIntN(Number(bits), raw) : raw, value)
      }
      agree(text, datatype, good.length)
      for (const bad of [min - 1n, max + 1n, 10n ** 18n, 10n ** 19n, 10n ** 40n]) {
        agree(`[${[...good, bad, ...good].join(", ")}]`, datatype, 81)
      }
    }
  })

  it("reads what is longer than its window, wherever that ends", () => {
    const values = Array.from({ length: 9_000 }, (_, index) => Math.sin(index) * 10 ** ((index % 12) - 6))
    for (const [datatype, data] of [
      ["FP64", Float64Array.from(values)],
      ["FP32", Float32Array.from(values)],
    ] as const) {
      for (let shift = 0; shift < 44; shift++) {
        const text = `${" ".repeat(shift)}[[${values.slice(0, 10).join(" , ")}],\n [${values.slice(10).join()}]]`
        assert.isAbove(text.length, 2 ** 17)
        const { elements, position } = outcome(text, datatype, values.length)
        assert(elements !== undefined)
        assert.deepStrictEqual([Buffer.compare(elements, bytes(data)), position], [0, text.length])
      }
    }
  })

  it("has no more memory for more numbers, and none of a former document in a later one", () => {
    const before = numberKernel()?.textBytes.buffer.byteLength
    const count = 300_000
    const text = `[${"1.25,".repeat(count - 1)}1.25]`
    assert.strictEqual(outcome(text, "FP32", count).elements?.length, count * 4)
    assert.strictEqual(numberKernel()?.textBytes.buffer.byteLength, before)
    // A document that ends in a number stays one that does.
    for (let end = 0; end < 220; end++) agree(text.slice(0, end), "FP32", worthwhile)
  })
})
