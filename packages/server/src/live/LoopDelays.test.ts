import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { LoopDelays } from "./LoopDelays.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }))
afterEach(() => void vi.useRealTimers())

test("a timer that comes in time has no delay", () => {
  const delays = new LoopDelays()
  vi.advanceTimersByTime(1000)
  expect(delays.take()).toEqual({ max: 0, p99: 0 })
  delays.close()
})

test("a delay counts once, also one that has not ended, and the first one after a step", () => {
  const delays = new LoopDelays()
  vi.advanceTimersByTime(1000)
  const now = vi.spyOn(performance, "now")
  const at = performance.now()
  now.mockReturnValue(at + 150)
  expect(delays.take().max).toBe(130)
  now.mockReturnValue(at + 160)
  expect(delays.take().max).toBe(0)
  now.mockReturnValue(at + 280)
  expect(delays.take().max).toBe(100)
  now.mockRestore()
  delays.close()
})

test("the 99th percentile is that of the probes", () => {
  const delays = new LoopDelays()
  vi.advanceTimersByTime(20 * 150)
  const at = performance.now()
  const now = vi.spyOn(performance, "now").mockReturnValue(at + 500)
  expect(delays.take()).toEqual({ max: 480, p99: 0 })
  now.mockRestore()
  delays.close()
})
