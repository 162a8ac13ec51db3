import { describe, expect, it } from "vitest"
import * as SequencePart from "./SequencePart.ts"

describe("the part of a sequence", () => {
  it("never changes, because runners of different versions and stored sequences must agree", () => {
    expect(SequencePart.count).toBe(1024)
    const parts = [1n, 5n, "5", "caller-7", 2n ** 63n - 1n, "ü"].map(SequencePart.partOf)
    expect(parts).toMatchInlineSnapshot(`
      [
        740,
        184,
        134,
        880,
        750,
        948,
      ]
    `)
  })

  it("differs between a number and the text of its digits", () => {
    expect(SequencePart.keyOf(5n)).toBe("UINT64 5")
    expect(SequencePart.keyOf("5")).toBe("BYTES 5")
  })

  it("spreads consecutive ids evenly", () => {
    const counts = Array.from({ length: SequencePart.count }, () => 0)
    for (let id = 1n; id <= 102_400n; id++) counts[SequencePart.partOf(id)]! += 1
    // 100 are expected in each.
    expect(Math.min(...counts)).toBeGreaterThan(40)
    expect(Math.max(...counts)).toBeLessThan(180)
  })

  it("of a request without an id is the first, whose owner refuses it", () => {
    expect(SequencePart.partOf(undefined)).toBe(0)
  })
})
