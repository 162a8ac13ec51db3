import { expect, it } from "vitest"
import { complete, fit, keyOf } from "./Shape.ts"

it.each([
  [
    [1, 28, 28],
    [1, 28, 28],
    [1, 28, 28],
  ],
  [
    [1, 1, 28, 28],
    [1, 28, 28],
    [1, 28, 28],
  ],
  [
    [28, 28],
    [1, 28, 28],
    [1, 28, 28],
  ],
  [
    [3, 4],
    ["n", 4],
    [3, 4],
  ],
  [
    [1, 3, 4],
    ["n", 4],
    [3, 4],
  ],
  [[], [1], [1]],
])("the shape %j fits %j as %j", (shape, dims, expected) => {
  expect(fit(shape, dims)).toEqual(expected)
})

it("another shape does not fit", () => {
  expect(() => fit([4, 3], ["n", 4])).toThrow("the shape [4, 3] does not fit [n, 4]")
  expect(() => fit([2, 1, 4], [-1, 4])).not.toThrow()
  expect(() => fit([2, 4, 4], [-1, 4])).toThrow("the shape [2, 4, 4] does not fit [?, 4]")
})

it("a count completes one variable dim", () => {
  expect(complete(12, [2, -1, 3])).toEqual([2, 2, 3])
  expect(complete(0, ["n", 0])).toEqual([0, 0])
})

it("a dim with a name is the same in all inputs", () => {
  expect([keyOf("n", 0), keyOf(-1, 2)]).toEqual(["n", "axis 2"])
})
