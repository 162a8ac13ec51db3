import * as fc from "fast-check"
import { expect, it } from "vitest"
import { parse, print } from "./GrpcTimeout.ts"

it.each([
  ["1H", 3_600_000],
  ["2M", 120_000],
  ["3S", 3_000],
  ["99999999m", 99_999_999],
  ["500u", 0.5],
  ["0n", 0],
  ["100000000m", undefined],
  ["-1S", undefined],
  ["1.5S", undefined],
  ["1", undefined],
  ["S", undefined],
  ["1s", undefined],
  ["1toString", undefined],
  ["", undefined],
])("timeout '%s' is %s ms", (header, expected) => {
  expect(parse(header)).toBe(expected)
})

it("a timeout has at most eight digits and is never rounded to nothing", () => {
  expect([0, 0.2, 1500.5, 99_999_999, 100_000_000, 1e15].map(print)).toEqual([
    "1m",
    "1m",
    "1501m",
    "99999999m",
    "100000S",
    "99999999S",
  ])
})

it("a timeout is read as it was written, rounded up", () => {
  fc.assert(
    fc.property(fc.double({ min: 1, max: 1e9, noNaN: true }), (timeout) => {
      const unit = timeout > 99_999_999 ? 1000 : 1
      expect(parse(print(timeout))).toBe(Math.ceil(timeout / unit) * unit)
    }),
  )
})
