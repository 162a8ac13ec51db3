import { expect, it } from "vitest"
import { constant, random, usualRange } from "./Fill.ts"
import { numbersOf } from "./Tensor.ts"

it("zeros of each kind", () => {
  expect(constant("FP16", [2], 0).data).toEqual(new Float32Array(2))
  expect(constant("INT64", [1, 2], 0).data).toEqual(new BigInt64Array(2))
  expect(constant("BYTES", [1], 0).data).toEqual([new Uint8Array()])
})

it("the same seed gives the same values, in the range", () => {
  const one = random("FP32", [1000], 7, { from: -1, to: 1 })
  expect(random("FP32", [1000], 7, { from: -1, to: 1 })).toEqual(one)
  expect(random("FP32", [1000], 8, { from: -1, to: 1 })).not.toEqual(one)
  const values = Array.from(numbersOf(one))
  expect(values.every((value) => value >= -1 && value < 1)).toBe(true)
  expect(Math.abs(values.reduce((sum, value) => sum + value, 0) / 1000)).toBeLessThan(0.1)
})

it("integers include both ends, and stay in the range of their datatype", () => {
  const dice = new Set(Array.from(numbersOf(random("UINT8", [500], 1, { from: 1, to: 6 }))))
  expect([...dice].toSorted()).toEqual([1, 2, 3, 4, 5, 6])
  const clamped = Array.from(numbersOf(random("INT8", [500], 1, { from: -1e9, to: 1e9 })))
  expect([Math.min(...clamped) < -100, Math.max(...clamped) > 100]).toEqual([true, true])
  expect(new Set(Array.from(numbersOf(random("BOOL", [50], 1, usualRange("BOOL")))))).toEqual(new Set([0, 1]))
})
