/** Arrays of numbers: the results equal those of JSON.parse bit by bit, and the same texts are rejected. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readElements } from "./JsonElements.ts"
import { readNumbers } from "./JsonNumbers.ts"
import { JsonReader } from "./JsonReader.ts"

const encoder = new TextEncoder()

/** Behind the array, so that the end of the text is far from every number. */
const padding = " ".repeat(64)

const reader = (text: string) => new JsonReader(encoder.encode(text + padding), "request")

const read = (datatype: "FP32" | "FP64" | "INT32" | "UINT8" | "INT64", texts: ReadonlyArray<string>, separator = ",") =>
  readElements(reader(`[${texts.join(separator)}]`), datatype, texts.length, "X")

const digits = (minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom(..."0123456789"), { minLength, maxLength }).map((some) => some.join(""))

/** Any valid JSON number, of any length. */
const written = fc
  .record({
    sign: fc.constantFrom("", "-"),
    whole: fc.oneof(
      fc.constantFrom("0", "1", "7"),
      digits(0, 11).map((rest) => `3${rest}`),
    ),
    zeros: fc.nat(12),
    fraction: fc.option(digits(1, 24)),
    exponent: fc.oneof(
      fc.constant(""),
      fc.tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-"), fc.nat(40)).map((parts) => parts.join("")),
    ),
  })
  .map(({ sign, whole, zeros, fraction, exponent }) => {
    const point = fraction === null ? "" : `.${"0".repeat(zeros)}${fraction}`
    return `${sign}${whole}${point}${exponent}`
  })

/** Halfway between two values of FP32, and next to it: where one digit far behind decides. */
const halfway = fc
  .tuple(fc.float({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom("", "1", "00000001"))
  .map(([value, more]) => {
    const bits = new Uint32Array(Float32Array.of(value).buffer)
    bits[0] = (bits[0] ?? 0) + 1
    const [next = 0] = new Float32Array(bits.buffer)
    const middle = (value + next) / 2
    if (!Number.isFinite(middle) || Math.abs(middle) > 1e20 || Math.abs(middle) < 1e-20) return "0.5"
    // oxlint-disable-next-line number-arg-out-of-range -- up to 100 digits, since ES2018
    const text = middle.toFixed(40)
    return text.replace(/0+$/, "").replace(/\.$/, ".0") + more
  })

const number = fc.oneof(
  written,
  halfway,
  fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.integer().map(String),
)

const separators = fc.constantFrom(",", ", ", ",\n  ", " , ", ",\t")

const bytes = (data: Float32Array | Float64Array) => new Uint8Array(data.buffer)

describe("numbers", () => {
  it("are the nearest FP64, and the FP32 nearest to that", () => {
    fc.assert(
      fc.property(fc.array(number, { minLength: 1, maxLength: 40 }), separators, (texts, separator) => {
        const values: Array<number> = JSON.parse(`[${texts.join()}]`)
        fc.pre(values.every(Number.isFinite))
        assert.deepStrictEqual(read("FP64", texts, separator), bytes(Float64Array.from(values)))
        assert.deepStrictEqual(read("FP32", texts, separator), bytes(Float32Array.from(values)))
      }),
      { numRuns: 2_000 },
    )
  })

  it("are read in one go: floats as JavaScript and Python write them, and integers", () => {
    const floats = fc.float({ noNaN: true, noDefaultInfinity: true, min: -1000, max: 1000 })
    fc.assert(
      fc.property(fc.array(floats, { minLength: 20, maxLength: 40 }), (values) => {
        const block = new Float64Array(64)
        const all = reader(`${values.join(", ")}]`)
        assert.strictEqual(readNumbers(all, block, values.length, "single"), values.length)
        assert.strictEqual(readNumbers(reader("1,-2, 3,400000000]"), block, 64, "integer"), 4)
        assert.deepStrictEqual([...block.subarray(0, 4)], [1, -2, 3, 400_000_000])
      }),
    )
  })

  it("leaves the reader before an invalid number", () => {
    const none = [
      "",
      "-",
      "+1,",
      ".5,",
      "1.,",
      "01,",
      "-01,",
      "1.e5,",
      "1e,",
      "1e+,",
      "1x,",
      "1.5x,",
      "1 ,",
      "NaN,",
      "[1,",
      '"1",',
    ]
    for (const text of none) {
      for (const kind of ["integer", "single", "double"] as const) {
        const all = reader(text)
        assert.strictEqual(readNumbers(all, new Float64Array(4), 4, kind), 0, text)
        assert.strictEqual(all.position, 0, text)
      }
    }
    for (const text of ["1.0,", "1e2,", "1234567890,"]) {
      assert.strictEqual(readNumbers(reader(text), new Float64Array(4), 4, "integer"), 0, text)
    }
    assert.strictEqual(readNumbers(reader("1,2,3,4]"), new Float64Array(2), 2, "double"), 2)
  })

  it("are read to the end of the text, wherever it is", () => {
    const text = encoder.encode("1.5, -2e3,30,4444.12345678901234567,5]")
    for (let end = 0; end <= text.length; end++) {
      const [block, other] = [new Float64Array(8), new Float64Array(8)]
      const cut = new JsonReader(text.subarray(0, end), "request")
      const longer = new Uint8Array(end + 200)
      longer.set(text.subarray(0, end))
      const padded = new JsonReader(longer, "request")
      const read = readNumbers(cut, block, 8, "double")
      assert.strictEqual(read, readNumbers(padded, other, 8, "double"))
      assert.strictEqual(read, [3, 9, 12, 35, 37].filter((comma) => comma < end).length)
      assert.strictEqual(cut.position, padded.position)
      assert.deepStrictEqual(block, other)
    }
  })

  it("are refused where JSON.parse refuses them", () => {
    const outcome = (text: string) => {
      try {
        return read("FP64", ["1.5", text, "2.5"])
      } catch (error) {
        return error instanceof Error ? error.message : error
      }
    }
    const mutated = fc
      .tuple(number, fc.nat(), fc.constantFrom(..."0123456789+-.eE x"), fc.nat(2))
      .map(([text, at, character, cut]) => {
        const from = at % (text.length + 1)
        return text.slice(0, from) + character + text.slice(from + cut)
      })
    fc.assert(
      fc.property(mutated, (text) => {
        const parsed = (() => {
          try {
            const values: unknown = JSON.parse(`[1.5,${text},2.5]`)
            return Array.isArray(values) && values.length === 3 && values.every(Number.isFinite) ? values : undefined
          } catch {
            return undefined
          }
        })()
        const several = outcome(text)
        if (parsed === undefined) assert.strictEqual(typeof several, "string", text)
        else assert.deepStrictEqual(several, bytes(Float64Array.from(parsed)), text)
      }),
      { numRuns: 2_000 },
    )
  })

  it("of integers are exact, and the first one out of range is named", () => {
    fc.assert(
      fc.property(fc.array(fc.maxSafeInteger(), { minLength: 1, maxLength: 40 }), (values) => {
        const long = BigInt64Array.from(values, BigInt)
        assert.deepStrictEqual(read("INT64", values.map(String)), new Uint8Array(long.buffer))
        const int = Int32Array.from(values, (value) => value | 0)
        assert.deepStrictEqual(read("INT32", Array.from(int, String)), new Uint8Array(int.buffer))
        const small = Uint8Array.from(values)
        assert.deepStrictEqual(read("UINT8", Array.from(small, String)), small)
      }),
    )
    assert.throws(
      () => read("UINT8", ["1", "255", "256", "-1"]),
      "integer out of range: element 2 of 'X' is 256, expected UINT8",
    )
    assert.throws(() => read("UINT8", ["1", "-1"]), "non-unsigned-integer as unsigned-integer: element 1 of 'X' is -1")
    assert.throws(() => read("INT64", ["1", "1.5"]), "non-signed-integer as signed-integer: element 1 of 'X' is 1.5")
  })
})
