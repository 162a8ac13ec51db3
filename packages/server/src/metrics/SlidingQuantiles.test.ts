import { describe, expect, it } from "vitest"
import { rotationSeconds, SlidingQuantiles } from "./SlidingQuantiles.ts"

const observed = (durations: ReadonlyArray<number>) => {
  const quantiles = new SlidingQuantiles()
  for (const duration of durations) quantiles.observe(duration)
  return quantiles
}

const expectNear = (actual: number | undefined, expected: number) => {
  expect(actual).toBeGreaterThanOrEqual(expected / 1.0101)
  expect(actual).toBeLessThanOrEqual(expected * 1.0101)
}

describe("quantiles", () => {
  it("nothing => NaN", () => {
    expect(new SlidingQuantiles().at([0, 0.5, 1])).toEqual([Number.NaN, Number.NaN, Number.NaN])
  })

  it("1..1000 => 500, 900, 999 within one per cent, whatever their order", () => {
    const durations = Array.from({ length: 1000 }, (_, index) => ((index * 7) % 1000) + 1)
    const [median, ninety, max] = observed(durations).at([0.5, 0.9, 0.999])
    expectNear(median, 500)
    expectNear(ninety, 900)
    expectNear(max, 999)
  })

  it.each([1, 1.5, 17, 1e3, 123_456, 3.5e9])("one of %d is every quantile", (duration) => {
    for (const value of observed([duration]).at([0, 0.5, 1])) expectNear(value, duration)
  })

  it("less than a microsecond is 0, and so is what is less than nothing", () => {
    expect(observed([0, 0.4, -3]).at([0, 1])).toEqual([0, 0])
  })

  it("more than an hour is an hour, in the quantiles", () => {
    const quantiles = observed([1e15])
    expectNear(quantiles.at([0.5])[0], 3.6e9)
    expect(quantiles.sum).toBe(1e15)
  })

  it("0 is the least and 1 the most", () => {
    const [min, max] = observed([10, 20, 3000]).at([0, 1])
    expectNear(min, 10)
    expectNear(max, 3000)
  })
})

describe("the window", () => {
  it("quantiles exclude values older than a minute; count and sum include them", () => {
    const quantiles = observed([1000])
    for (let seconds = rotationSeconds; seconds < 60; seconds += rotationSeconds) quantiles.rotate()
    expectNear(quantiles.at([0.5])[0], 1000)
    quantiles.rotate()
    expect(quantiles.at([0.5])).toEqual([Number.NaN])
    expect([quantiles.count, quantiles.sum]).toEqual([1, 1000])
  })

  it("all slots count", () => {
    const quantiles = observed([1])
    for (const duration of [10, 100, 1000]) {
      quantiles.rotate()
      quantiles.observe(duration)
    }
    const [first, second, third, fourth] = quantiles.at([0.25, 0.5, 0.75, 1])
    expectNear(first, 1)
    expectNear(second, 10)
    expectNear(third, 100)
    expectNear(fourth, 1000)
  })
})
