import * as fc from "fast-check"
import { expect, it } from "vitest"
import * as Axis from "./Axis.ts"

it.each<readonly [number, ReadonlyArray<number>]>([
  [34_240, [0, 10_000, 20_000, 30_000, 40_000]],
  [100, [0, 20, 40, 60, 80, 100]],
  [7, [0, 2, 4, 6, 8]],
  [0.3, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]],
])("0 to %d", (max, ticks) => {
  expect(Axis.linear(max).ticks).toEqual(ticks)
})

it.each<readonly [number, number, ReadonlyArray<number>]>([
  [0.06, 15.2, [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]],
  [1, 10, [1, 2, 5, 10]],
  [3, 3, [2, 5]],
  [0.03, 4000, [0.1, 1, 10, 100, 1000]],
])("%d to %d by factors", (min, max, ticks) => {
  expect(Axis.logarithmic(min, max).ticks).toEqual(ticks)
})

it("every value in between has its place", () => {
  const value = fc.double({ min: 1e-3, max: 1e6, noNaN: true })
  fc.assert(
    fc.property(value, value, value, (one, other, inner) => {
      const [min, max] = [Math.min(one, other), Math.max(one, other)]
      const between = Math.min(max, Math.max(min, inner))
      for (const axis of [Axis.linear(max), Axis.logarithmic(min, max)]) {
        expect(axis.at(between)).toBeGreaterThanOrEqual(-1e-9)
        expect(axis.at(between)).toBeLessThanOrEqual(1 + 1e-9)
        expect(axis.ticks.length).toBeGreaterThan(1)
        expect(axis.ticks.length).toBeLessThan(12)
      }
    }),
  )
})
