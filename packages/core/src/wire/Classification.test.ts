import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { classify, type Slices } from "./Classification.ts"
import type { DataType } from "../tensor/DataType.ts"
import * as TypedTensor from "../tensor/TypedTensor.ts"

const decoder = new TextDecoder()

const complete = <A>(slices: Slices<A>, onSlice = (): void => {}): A => {
  for (;;) {
    const slice = slices.next()
    if (slice.done === true) return slice.value
    onSlice()
  }
}

const classes = (
  tensor: TypedTensor.TypedTensor,
  count: number,
  options: { readonly batched?: boolean; readonly labels?: ReadonlyArray<string> } = {},
) => {
  const { batched = false, labels } = options
  const { shape, bytes } = Result.getOrThrow(complete(classify(tensor, count, { batched, labels })))
  const { data } = new TypedTensor.TypedTensor("BYTES", shape, bytes)
  return { shape, texts: data.map((text) => decoder.decode(text)) }
}

const fp32 = (...values: ReadonlyArray<number>) => TypedTensor.make("FP32", [values.length], Float32Array.from(values))

const fp64 = (value: number) => classes(TypedTensor.make("FP64", [1], Float64Array.of(value)), 1).texts[0]

it("gives the highest first, of equal ones the lower index", () => {
  expect(classes(fp32(0.5, 2, -1, 2, 0.1), 4)).toEqual({
    shape: [4],
    texts: ["2.000000:1", "2.000000:3", "0.500000:0", "0.100000:4"],
  })
})

it("classifies each row of a batch by itself, over all further dims", () => {
  const tensor = TypedTensor.make("INT32", [2, 2, 2], Int32Array.of(1, 4, 3, 2, 17, -5, 0, 17))
  expect(classes(tensor, 2, { batched: true })).toEqual({ shape: [2, 2], texts: ["4:1", "3:2", "17:0", "17:3"] })
  expect(classes(tensor, 3)).toEqual({ shape: [3], texts: ["17:4", "17:7", "4:1"] })
})

it("clips the count to 1 from below and to a row from above", () => {
  for (const count of [0, -1, -(2 ** 63)]) expect(classes(fp32(1, 2), count).texts).toEqual(["2.000000:1"])
  for (const count of [2, 3, 2 ** 63]) expect(classes(fp32(1, 2), count).shape).toEqual([2])
  const none = TypedTensor.make("FP32", [3, 0], new Float32Array())
  expect(classes(none, 5, { batched: true })).toEqual({ shape: [3, 0], texts: [] })
})

it("adds labels where there are some", () => {
  expect(classes(fp32(1, 3, 2, 0), 4, { labels: ["a", "b:c", ""] }).texts).toEqual([
    "3.000000:1:b:c",
    "2.000000:2",
    "1.000000:0:a",
    "0.000000:3",
  ])
})

it("labels an index into the labels by what it points to", () => {
  const index = TypedTensor.make("INT32", [2, 1], Int32Array.of(1, 7))
  expect(classes(index, 1, { batched: true, labels: ["cat", "dog"] }).texts).toEqual(["1:0:dog", "7:0"])
})

it.each<[value: number, text: string]>([
  [1, "1.000000:0"],
  [1 / 3, "0.333333:0"],
  [-0, "-0.000000:0"],
  [-1e-9, "-0.000000:0"],
  [5e-7, "0.000000:0"],
  [5.000001e-7, "0.000001:0"],
  // Halfway: to the even digit.
  [1 / 128, "0.007812:0"],
  [3 / 128, "0.023438:0"],
  [-5 / 128, "-0.039062:0"],
  [1e15 + 0.125, "1000000000000000.125000:0"],
  [1e22, "10000000000000000000000.000000:0"],
  [-1.5e300, `-${BigInt(1.5e300)}.000000:0`],
  [Infinity, "inf:0"],
  [-Infinity, "-inf:0"],
  [Number.NaN, "nan:0"],
])("prints %d as C does: %s", (value, text) => {
  expect(fp64(value)).toBe(text)
})

it("prints an FP32 as the double it is, and integers with all their digits", () => {
  expect(classes(fp32(16777217.3, 0.1), 2).texts).toEqual(["16777218.000000:0", "0.100000:1"])
  const long = TypedTensor.make("UINT64", [2], BigUint64Array.of(1n, 2n ** 64n - 1n))
  expect(classes(long, 2).texts).toEqual(["18446744073709551615:1", "1:0"])
  expect(classes(TypedTensor.make("INT8", [2], Int8Array.of(-128, -1)), 1).texts).toEqual(["-1:1"])
})

it("takes NaN for the lowest", () => {
  expect(classes(fp32(Number.NaN, -Infinity, Number.NaN, 1), 4).texts).toEqual([
    "1.000000:3",
    "-inf:1",
    "nan:0",
    "nan:2",
  ])
})

it("is a sort that is cut off", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1 }),
      fc.integer({ min: 1, max: 12 }),
      (values, k) => {
        const sorted = values.map((value, index) => ({ value, index })).toSorted((a, b) => b.value - a.value)
        const tensor = TypedTensor.make("INT32", [values.length], Int32Array.from(values))
        expect(classes(tensor, k).texts).toEqual(sorted.slice(0, k).map(({ value, index }) => `${value}:${index}`))
      },
    ),
  )
})

it("refuses what would be too large, and what has no order", () => {
  const failure = (tensor: TypedTensor.TypedTensor, count: number) =>
    Result.getOrThrow(Result.flip(complete(classify(tensor, count, { batched: true, labels: undefined }))))
  const large = new TypedTensor.TypedTensor("INT8", [2, 500_001], new Uint8Array(1_000_002))
  expect(failure(large, 500_001)).toMatchObject({
    _tag: "InvalidRequest",
    message: "classification output tensor too large",
  })
  expect(classes(large, 3, { batched: true }).shape).toEqual([2, 3])
  // A row has too many elements, however few classes are requested.
  const long = new TypedTensor.TypedTensor("INT8", [1, 1_000_001], new Uint8Array(1_000_001))
  expect(failure(long, 1)).toMatchObject({ message: "classification output tensor too large" })
  for (const datatype of ["BYTES", "FP16", "BF16", "BOOL"] satisfies ReadonlyArray<DataType>) {
    const message = `class result not available for output due to unsupported type '${datatype}'`
    expect(failure(new TypedTensor.TypedTensor(datatype, [1, 0], new Uint8Array()), 1)).toMatchObject({ message })
  }
})

it("does a large output in slices", () => {
  const length = 200_000
  const values = Int32Array.from({ length }, (_, index) => (index * 7919) % length)
  let slices = 0
  const options = { batched: false, labels: undefined }
  const tensor = TypedTensor.make("INT32", [length], values)
  const { bytes } = Result.getOrThrow(complete(classify(tensor, length, options), () => (slices += 1)))
  const { data } = new TypedTensor.TypedTensor("BYTES", [length], bytes)
  expect(data.every((text, rank) => decoder.decode(text).startsWith(`${length - 1 - rank}:`))).toBe(true)
  expect(slices).toBeGreaterThan(20)
})
