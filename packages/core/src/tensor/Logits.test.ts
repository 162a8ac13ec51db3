import { describe, expect, it } from "@effect/vitest"
import * as Logits from "./Logits.ts"

const close = (expected: ReadonlyArray<number>) => expected.map((value) => expect.closeTo(value, 6))

describe("softmax", () => {
  it("gives probabilities that add up to 1", () => {
    expect([...Logits.softmax(Float32Array.of(-1.5, 2.1))]).toEqual(close([0.026597, 0.973403]))
    expect(Logits.softmax([1, 2, 3, 4]).reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 6)
  })

  it("of logits of any size", () => {
    expect([...Logits.softmax(Float32Array.of(1000, 1000, -1000))]).toEqual([0.5, 0.5, 0])
    expect([...Logits.softmax([0, -Infinity])]).toEqual([1, 0])
    expect(Logits.softmax(new Float32Array(0))).toHaveLength(0)
    expect(Logits.softmax(new Float32Array(300_000))[0]).toBeCloseTo(1 / 300_000, 9)
  })

  it("of each row by itself", () => {
    expect([...Logits.softmax([0, 0, 1000, 0], 2)]).toEqual([0.5, 0.5, 1, 0])
    expect(() => Logits.softmax([1, 2, 3], 2)).toThrow("3 values are not a multiple of 2 classes")
    expect(() => Logits.softmax([1, 2, 3], 0)).toThrow("3 values are not a multiple of 0 classes")
  })
})

it("sigmoid gives each logit a separate probability", () => {
  expect([...Logits.sigmoid(Float32Array.of(-1.5, 2.1, 0))]).toEqual(close([0.182426, 0.890903, 0.5]))
  expect([...Logits.sigmoid([1000, -1000, Infinity, -Infinity])]).toEqual([1, 0, 1, 0])
})

describe("argmax", () => {
  it("is where the largest value is, the first of equal ones", () => {
    expect(Logits.argmax(Float32Array.of(-1.5, 2.1))).toBe(1)
    expect(Logits.argmax([3, 7, 7])).toBe(1)
    expect(Logits.argmax([-Infinity, -Infinity])).toBe(0)
  })

  it("ignores NaN", () => {
    expect(Logits.argmax([NaN, 1, NaN])).toBe(1)
    expect(Logits.argmax([NaN])).toBe(-1)
    expect(Logits.argmax([])).toBe(-1)
  })

  it("counts within each row", () => {
    expect(Logits.argmaxRows([1, 2, 4, 3, NaN, NaN], 2)).toEqual([1, 0, -1])
    expect(Logits.argmaxRows([], 2)).toEqual([])
    expect(() => Logits.argmaxRows([1], 2)).toThrow("1 values are not a multiple of 2 classes")
  })
})

it("topK is the largest first, the first of equal ones, and no more than there are", () => {
  const values = Float32Array.of(1, 3, 2, 3, NaN)
  expect(Logits.topK(values, 3)).toEqual([
    { index: 1, value: 3 },
    { index: 3, value: 3 },
    { index: 2, value: 2 },
  ])
  expect(Logits.topK(values, 99)).toHaveLength(4)
  expect(Logits.topK(values, 0)).toEqual([])
  expect(Logits.topK([], 3)).toEqual([])
})
