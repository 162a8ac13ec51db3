import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

const floats = <const S extends Tensor.Shape>(shape: S, ...values: ReadonlyArray<number>) =>
  Tensor.make("FP32", shape, Float32Array.from(values))

const plus = (one: number, other: number) => one + other

describe("zipWith", () => {
  it("3x1 + 3x5 = 3x5: what there is one of counts for all", () => {
    const sum = Tensor.zipWith(floats([3, 1], 10, 20, 30), floats([3, 5], ...Array(15).keys()), plus)
    const shape: readonly [3, 5] = sum.shape
    expect(shape).toEqual([3, 5])
    expect([...sum.data]).toEqual([10, 11, 12, 13, 14, 25, 26, 27, 28, 29, 40, 41, 42, 43, 44])
  })

  it("3 + 2x3, 2x3 + [] and 2x1 + 1x3: a missing extent is 1, on either side", () => {
    const six = floats([2, 3], 0, 1, 2, 3, 4, 5)
    const minus = (one: number, other: number) => one - other
    expect([...Tensor.zipWith(floats([3], 10, 20, 30), six, minus).data]).toEqual([10, 19, 28, 7, 16, 25])
    expect([...Tensor.zipWith(six, floats([], 1), minus).data]).toEqual([-1, 0, 1, 2, 3, 4])
    const outer = Tensor.zipWith(floats([2, 1], 0, 10), floats([1, 3], 1, 2, 3), plus)
    expect([outer.shape, [...outer.data]]).toEqual([
      [2, 3],
      [1, 2, 3, 11, 12, 13],
    ])
  })

  it("nothing is made of nothing", () => {
    const none = Tensor.zipWith(floats([0, 3]), floats([1], 1), plus)
    expect([none.shape, none.data.length]).toEqual([[0, 3], 0])
  })

  it("elements of 64 bits keep all of them", () => {
    const big = Tensor.make("INT64", [1], BigInt64Array.of(2n ** 62n))
    expect([...Tensor.zipWith(big, big, (one, other) => one - other + one).data]).toEqual([2n ** 62n])
  })

  it("shapes that do not fit are refused, with both", () => {
    const any: ReadonlyArray<number> = [2]
    const two = Tensor.make("FP32", any, new Float32Array(2))
    expect(() => Tensor.zipWith(two, floats([4, 3], ...Array(12).keys()), plus)).toThrow(
      "Shapes [2] and [4,3] do not fit: 2 and 3 are neither equal nor 1.",
    )
  })

  it("a result that the datatype cannot hold is refused, never wrapped or cut", () => {
    const bytes = Tensor.make("UINT8", [2], Uint8Array.of(200, 100))
    expect(() => Tensor.zipWith(bytes, bytes, plus)).toThrow("400 is not a valid UINT8 element.")
    expect(() => Tensor.map(bytes, (value) => value / 8)).toThrow("12.5 is not a valid UINT8 element.")
    const long = Tensor.make("INT64", [1], BigInt64Array.of(2n ** 62n))
    expect(() => Tensor.map(long, (value) => value * 2n)).toThrow("9223372036854775808 is not a valid INT64 element.")
  })
})

it("map keeps datatype and shape", () => {
  const doubled = Tensor.map(floats([2, 1], 1, 2), (value) => value * 2)
  const shape: readonly [2, 1] = doubled.shape
  expect([doubled.datatype, shape, [...doubled.data]]).toEqual(["FP32", [2, 1], [2, 4]])
})

const Add = Model.bind(
  { name: "add", inputs: [Tensor.FP32(1), Tensor.FP32(-1)], outputs: [Tensor.FP32(-1)], maxBatchSize: 4 },
  ([one, other]) => [Tensor.zipWith(one, other, plus)],
)

it.effect("a model that adds (1,) to (-1,), of a batch of 3", () =>
  Effect.gen(function* () {
    const { inferBatch } = yield* Add
    const { OUTPUT_1 } = yield* inferBatch({
      INPUT_1: floats([3, 1], 1, 2, 3),
      INPUT_2: floats([3, 2], 0, 10, 20, 30, 40, 50),
    })
    expect([OUTPUT_1.shape, [...OUTPUT_1.data]]).toEqual([
      [3, 2],
      [1, 11, 22, 32, 43, 53],
    ])
  }).pipe(Effect.provide(Add.layer)),
)

/** Code that must not compile; `tsc` checks each `@ts-expect-error`. */
export const refused = () => {
  const [two, three] = [floats([2], 0, 0), floats([3], 0, 0, 0)]
  // @ts-expect-error 2 and 3 are neither equal nor 1
  Tensor.zipWith(two, three, plus)
  // @ts-expect-error another datatype
  Tensor.zipWith(two, Tensor.make("FP64", [2], new Float64Array(2)), plus)
  // @ts-expect-error the elements of INT64 are bigint
  Tensor.map(Tensor.make("INT64", [1], BigInt64Array.of(1n)), (value) => value + 1)
  // @ts-expect-error BF16 has raw bits
  Tensor.map(Tensor.make("BF16", [1], Uint16Array.of(1)), (value) => value)
}
