import { expect, it } from "vitest"
import { softmax } from "./Softmax.ts"

it("gives probabilities, for logits of any size", () => {
  expect(softmax(Float32Array.of(-1.5, 2.1))[1]).toBeCloseTo(0.973403, 6)
  expect([...softmax(Float32Array.of(1000, 1000, -1000))]).toEqual([0.5, 0.5, 0])
  expect(softmax(new Float32Array(0))).toHaveLength(0)
})
