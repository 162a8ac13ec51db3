import { expect, it } from "vitest"
import { Latency } from "./Latency.ts"

/** A response each 10 ms from a time on. */
const filled = (latency: Latency, millis: number, from: number, count: number) => {
  for (let index = 0; index < count; index++) latency.record(millis, from + index * 10)
  return from + (count - 1) * 10
}

it("is the mean of the first responses", () => {
  const latency = new Latency()
  expect(latency.average).toBe(undefined)
  latency.record(10, 0)
  latency.record(20, 0)
  latency.record(30, 0)
  expect(latency.average).toBeCloseTo(20)
})

it("a replica that becomes ten times slower is found within half a second", () => {
  const latency = new Latency()
  const now = filled(latency, 5, 0, 500)
  expect(latency.slowness(5, now)).toBe(1)
  const later = filled(latency, 50, now, 50)
  expect(latency.slowness(5, later)).toBeGreaterThan(2)
})

it("small differences are noise", () => {
  const latency = new Latency()
  latency.record(9, 0)
  expect(latency.slowness(5, 0)).toBe(1)
  expect(latency.slowness(4, 0)).toBeGreaterThan(2)
  expect(latency.slowness(0, 0)).toBe(1)
})

it("a slow replica without calls is forgiven", () => {
  const latency = new Latency()
  latency.record(50, 0)
  expect(latency.slowness(5, 0)).toBeCloseTo(10)
  expect(latency.slowness(5, 5_000)).toBeCloseTo(1 + 9 / Math.E)
  expect(latency.slowness(5, 12_000)).toBe(1)
})

it("a call that was given up counts if it took longer than usual", () => {
  const latency = new Latency()
  latency.record(10, 0)
  latency.recordAtLeast(5, 10_000)
  expect(latency.average).toBe(10)
  latency.recordAtLeast(100, 10_000)
  expect(latency.average).toBeGreaterThan(90)
})
