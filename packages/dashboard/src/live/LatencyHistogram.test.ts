import * as fc from "fast-check"
import { expect, test } from "vitest"
import * as LatencyHistogram from "./LatencyHistogram.ts"

const histogramOf = (micros: ReadonlyArray<number>): LatencyHistogram.LatencyHistogram => {
  const counts = new Uint32Array(LatencyHistogram.bucketCount)
  for (const duration of micros) {
    const bucket = LatencyHistogram.bucketOf(duration)
    counts[bucket] = (counts[bucket] ?? 0) + 1
  }
  return LatencyHistogram.sparse(counts)
}

const durations = fc.array(fc.double({ min: 1, max: 9e7, noNaN: true }), { minLength: 1, maxLength: 50 })

test("a quantile is at most 4 % from that of the durations", () => {
  fc.assert(
    fc.property(durations, fc.double({ min: 0.01, max: 1, noNaN: true }), (micros, quantile) => {
      const sorted = micros.toSorted((one, other) => one - other)
      const exact = sorted[Math.max(1, Math.ceil(quantile * sorted.length)) - 1] ?? 0
      const found = LatencyHistogram.quantileOf(histogramOf(micros), quantile) ?? 0
      expect(Math.abs(found - exact) / exact).toBeLessThan(0.04)
    }),
  )
})

test("merged histograms are the histogram of all durations", () => {
  fc.assert(
    fc.property(durations, durations, (one, other) => {
      const merged = LatencyHistogram.merge([histogramOf(one), histogramOf(other)])
      expect(merged).toEqual(histogramOf([...one, ...other]))
      expect(LatencyHistogram.countOf(merged)).toBe(one.length + other.length)
    }),
  )
})

test("durations below a microsecond, and above a minute and a half, have the first and the last bucket", () => {
  expect([0, 0.5, 1].map(LatencyHistogram.bucketOf)).toEqual([0, 0, 0])
  expect([9.1e7, 1e12].map(LatencyHistogram.bucketOf)).toEqual([239, 239])
})

test("a histogram without requests has no quantiles", () => {
  expect(LatencyHistogram.quantileOf([], 0.5)).toBeUndefined()
})
