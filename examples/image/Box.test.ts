import { expect, it } from "vitest"
import { type Box, overlap, surest } from "./Box.ts"

const box = (left: number, top: number, right: number, bottom: number, score = 1): Box => ({
  left,
  top,
  right,
  bottom,
  score,
})

it("overlap is shared area over covered area", () => {
  expect(overlap(box(0, 0, 2, 2), box(0, 0, 2, 2))).toBe(1)
  expect(overlap(box(0, 0, 2, 2), box(1, 0, 3, 2))).toBeCloseTo(1 / 3)
  expect(overlap(box(0, 0, 1, 1), box(2, 2, 3, 3))).toBe(0)
  expect(overlap(box(1, 1, 1, 1), box(1, 1, 1, 1))).toBe(0)
})

it("of boxes that overlap the surest stays, of others all do, the surest first", () => {
  const [good, better, other] = [box(0, 0, 2, 2, 0.8), box(0, 0.1, 2, 2, 0.9), box(5, 5, 6, 6, 0.85)]
  expect(surest([good, better, other], 0.3)).toEqual([better, other])
  expect(surest([good, box(1, 0, 3, 2, 0.9)], 0.5)).toHaveLength(2)
  expect(surest([], 0.3)).toEqual([])
})
