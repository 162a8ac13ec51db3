import { expect, it } from "vitest"
import { numbers } from "./Level.ts"

it.each<readonly [string, ReadonlyArray<number>]>([
  ["16", [16]],
  ["1,4,16", [1, 4, 16]],
  ["1:4", [1, 2, 3, 4]],
  ["1:16:5", [1, 6, 11, 16]],
  ["1:64:x2", [1, 2, 4, 8, 16, 32, 64]],
  ["1:50:x4, 64", [1, 4, 16, 64]],
])("%s", (text, expected) => {
  expect(numbers(text, true)).toEqual(expected)
})

it("rates may be fractions", () => {
  expect(numbers("0.5,1.5:3:0.5", false)).toEqual([0.5, 1.5, 2, 2.5, 3])
})

it.each(["", "0", "1,,2", "a", "1:2:3:4", "1:10:x1", "1:10:0", "-1", "1:1000000", "8:4", "1.5"])(
  "%s is refused",
  (text) => {
    expect(() => numbers(text, true)).toThrow("such as 1,4,16")
  },
)
