import { expect, it } from "vitest"
import { Hedging } from "./Hedging.ts"
import { LatencyWindow } from "./LatencyWindow.ts"

it("waits for a fixed time", () => {
  expect(new Hedging({ after: 50 }).delay(0)).toBe(50)
})

it("waits for a percentile of the response times, within 10 %", () => {
  const hedging = new Hedging({ percentile: 95 })
  for (let millis = 1; millis <= 1000; millis++) hedging.record(millis, 0)
  expect(hedging.delay(0)).toBeGreaterThan(950 * 0.9)
  expect(hedging.delay(0)).toBeLessThan(950 * 1.1)
})

it("does not hedge before 100 responses", () => {
  const hedging = new Hedging({ percentile: 50 })
  for (let count = 0; count < 99; count++) hedging.record(10, 0)
  expect(hedging.delay(0)).toBe(undefined)
  hedging.record(10, 0)
  expect(hedging.delay(99)).toBe(undefined)
  expect(hedging.delay(100)).toBeGreaterThanOrEqual(10)
  expect(hedging.delay(100)).toBeLessThan(11)
})

it("forgets response times after a minute", () => {
  const window = new LatencyWindow()
  for (let count = 0; count < 1_000; count++) window.record(100, 0)
  for (let count = 0; count < 1_000; count++) window.record(1, 31_000)
  expect(window.percentile(90, 31_000)).toBeGreaterThan(90)
  expect(window.percentile(90, 62_000)).toBeLessThan(2)
  expect(window.percentile(90, 200_000)).toBe(undefined)
})

it("takes response times of any size", () => {
  const window = new LatencyWindow()
  for (let count = 0; count < 100; count++) window.record(count % 2 === 0 ? 0 : 1e12, 0)
  expect(window.percentile(10, 0)).toBe(0.01)
  expect(window.percentile(99, 0)).toBeGreaterThan(1e7)
})
