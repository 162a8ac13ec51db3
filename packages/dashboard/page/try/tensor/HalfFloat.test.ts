import { describe, expect, it } from "vitest"
import { fromBf16, fromFp16, toBf16, toFp16 } from "./HalfFloat.ts"

describe("FP16", () => {
  it("has all its bit patterns back", () => {
    const wrong = Array.from({ length: 65_536 }, (_, bits) => bits).filter((bits) => {
      const value = fromFp16(bits)
      return Number.isNaN(value) ? (toFp16(value) & 0x7c00) !== 0x7c00 : toFp16(value) !== bits
    })
    expect(wrong).toEqual([])
  })

  it.each([
    [1 / 3, 0x3555],
    [65519.99, 0x7bff],
    [65520, 0x7c00],
    [-Infinity, 0xfc00],
    [2 ** -24, 1],
    [2 ** -25, 0],
    [1.5 * 2 ** -24, 2],
    [1 + 1 / 2048, 0x3c00],
    [1 + 3 / 2048, 0x3c02],
    [2 - 2 ** -12, 0x4000],
  ])("rounds %d to the nearest, and to even", (value, bits) => {
    expect(toFp16(value)).toBe(bits)
  })
})

describe("BF16", () => {
  it.each([
    [1, 0x3f80],
    [-2.5, 0xc020],
    [Infinity, 0x7f80],
    [1 + 1 / 256, 0x3f80],
    [1 + 3 / 256, 0x3f82],
  ])("of %d", (value, bits) => {
    expect(toBf16(value)).toBe(bits)
  })

  it("is the upper half of an FP32", () => {
    expect([0x3f80, 0xc020, 0x7f80].map(fromBf16)).toEqual([1, -2.5, Infinity])
    expect(fromBf16(toBf16(NaN))).toBeNaN()
  })
})
