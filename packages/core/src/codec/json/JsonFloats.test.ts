/** FP32 values as JSON: the text reads back to the same value, and no shorter one does. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { longest, writeSingles } from "./JsonFloats.ts"

const written = (data: Float32Array): ReadonlyArray<string> => {
  const bytes = new Uint8Array((data.length + 1) * longest)
  const view = new DataView(bytes.buffer)
  const end = writeSingles(data, new Int32Array(data.buffer), data.length, bytes, view, 0)
  return new TextDecoder().decode(bytes.subarray(0, end)).split(",")
}

/** The significant digits of a number's text. */
const digits = (text: string): number =>
  (/^[^e]*/.exec(text)?.[0] ?? "").replace(/[-.]/g, "").replace(/^0+|0+$/g, "").length

/** How many are needed, found by trying. */
const needed = (value: number): number => {
  let precision = 1
  while (precision < 9 && Math.fround(Number(value.toPrecision(precision))) !== value) precision += 1
  return precision
}

const check = (data: Float32Array) => {
  for (const [index, text] of written(data).entries()) {
    const value = data[index] ?? Number.NaN
    assert(Object.is(Math.fround(JSON.parse(text)), value), `${value} is written as ${text}`)
    assert(digits(text) <= needed(value), `${value} is written as ${text}, which has too many digits`)
  }
}

const bits = fc.uint32Array({ minLength: 1, maxLength: 100 }).map((words) => {
  // Without infinities and NaN, which are no JSON.
  const finite = words.map((word) => (((word >>> 23) & 0xff) === 0xff ? word & 0x807f_ffff : word))
  return new Float32Array(finite.buffer)
})

/** Few digits, as of prices, percentages and pixels. */
const short = fc
  .array(fc.tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.integer({ min: -12, max: 12 })), {
    minLength: 1,
    maxLength: 100,
  })
  .map((some) => Float32Array.from(some, ([digits, exponent]) => Number(`${digits}e${exponent}`)))

describe("FP32 values", () => {
  it("of any bits read back, with the fewest digits", () => {
    fc.assert(fc.property(fc.oneof(bits, short), check), { numRuns: 1_000 })
  })

  it("at the edges read back: powers of two and of ten, and what is next to them", () => {
    const edges: Array<number> = []
    for (let exponent = -149; exponent < 128; exponent++) edges.push(2 ** exponent, -(2 ** exponent))
    for (let exponent = -44; exponent < 39; exponent++) edges.push(Number(`1e${exponent}`))
    const exact = Float32Array.from(edges)
    check(exact)
    for (const step of [1, -1]) {
      const words = new Int32Array(exact.buffer).map((word) => word + step)
      const next = new Float32Array(words.buffer).filter(Number.isFinite)
      check(next)
    }
  })

  it("look as JavaScript writes numbers", () => {
    const cases = {
      "0": 0,
      "1": 1,
      "-255": -255,
      "16777215": 16_777_215,
      "0.1": 0.1,
      "-0.33333334": -1 / 3,
      "3.1415927": Math.PI,
      "123456.79": 123_456.789,
      "0.000001": 1e-6,
      "1e-7": 1e-7,
      "1.1754944e-38": 2 ** -126,
      "1e-45": 2 ** -149,
      "100000000000000000000": 1e20,
      "1e+21": 1e21,
      "3.4028235e+38": 2 ** 128 - 2 ** 104,
    }
    assert.deepStrictEqual(written(Float32Array.from(Object.values(cases))).toSorted(), Object.keys(cases).toSorted())
    assert.deepStrictEqual(written(Float32Array.of(-0, Number.NaN, Infinity, -Infinity)), [
      "-0.0",
      "NaN",
      "Infinity",
      "-Infinity",
    ])
    assert.deepStrictEqual(written(new Float32Array(Uint32Array.of(0xffc0_0000).buffer)), ["NaN"])
  })
})
