import * as fc from "fast-check"
import { expect, it } from "vitest"
import { BatchCosts } from "./BatchCosts.ts"

const learned = (samples: ReadonlyArray<readonly [rows: number, time: number]>): BatchCosts => {
  const costs = new BatchCosts()
  for (const [rows, time] of samples) costs.learn(rows, time)
  return costs
}

it("learns a line from batches of different sizes", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1, max: 1e3, noNaN: true }),
      fc.double({ min: 0, max: 100, noNaN: true }),
      fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 2, maxLength: 40 }),
      (base, perRow, sizes) => {
        fc.pre(Math.max(...sizes.slice(-8)) > 2 * Math.min(...sizes.slice(-8)))
        const costs = learned(sizes.map((rows) => [rows, base + perRow * rows]))
        for (const rows of [1, 16, 64]) expect(costs.mean(rows)).toBeCloseTo(base + perRow * rows, 3)
      },
    ),
  )
})

it("any durations give finite predictions, and no negative ones", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 4096 }), fc.double({ min: 0, max: 1e12, noNaN: true }))),
      fc.integer({ min: 1, max: 4096 }),
      (samples, rows) => {
        const costs = learned(samples)
        for (const time of [costs.mean(rows), costs.low(rows)]) {
          expect(time).toBeGreaterThanOrEqual(0)
          expect(time).toBeLessThan(Infinity)
        }
        expect(costs.low(rows)).toBeLessThanOrEqual(costs.mean(rows))
      },
    ),
  )
})

it("knows nothing before the first batch, and assumes that the size does not matter after it", () => {
  expect(learned([]).isKnown).toBe(false)
  expect(learned([]).mean(8)).toBe(0)
  expect(learned([[1, 10]]).mean(8)).toBe(10)
})

it("forgets what no longer holds", () => {
  const costs = learned(Array.from({ length: 500 }, (_, index) => [8, index < 250 ? 100 : 10] as const))
  expect(costs.mean(8)).toBeCloseTo(10, 0)
})

it("a quarter of the batches take less than the low duration", () => {
  const durations = Array.from({ length: 20_000 }, (_, index) => -Math.log(1 - ((index * 0.618_034) % 1)) * 10)
  const costs = learned(durations.map((time) => [1, time]))
  const share = durations.filter((time) => time < costs.low(1)).length / durations.length
  expect(share).toBeGreaterThan(0.1)
  expect(share).toBeLessThan(0.4)
})

it("forgets the first batches, which were slower, after three that are not", () => {
  expect(learned([2000, 2000, 10, 10, 10].map((time) => [1, time])).mean(1)).toBe(10)
})

it("a single batch that is slower by far counts little", () => {
  const usual = Array.from({ length: 40 }, () => [8, 10] as const)
  expect(learned([...usual, [8, 10_000]]).mean(8)).toBeLessThan(12)
})

it("knows durations after four batches", () => {
  const samples = Array.from({ length: 4 }, () => [8, 10] as const)
  expect(learned(samples.slice(1)).isKnown).toBe(false)
  expect(learned(samples).isKnown).toBe(true)
})
