import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { ExecuteTimer } from "./ExecuteTimer.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
afterEach(() => void vi.useRealTimers())

it("an execution has its time", () => {
  const onTimeout = vi.fn()
  const timer = new ExecuteTimer(100, onTimeout)
  vi.advanceTimersByTime(99)
  expect(onTimeout).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(onTimeout).toHaveBeenCalledOnce()
  timer.stop()
})

it("times in which it waits for a reader do not count", () => {
  const onTimeout = vi.fn()
  const timer = new ExecuteTimer(100, onTimeout)
  vi.advanceTimersByTime(60)
  timer.waits(true)
  vi.advanceTimersByTime(1000)
  timer.waits(false)
  vi.advanceTimersByTime(39)
  expect(onTimeout).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(onTimeout).toHaveBeenCalledOnce()
})

it("it waits until it waits for none of its readers", () => {
  const onTimeout = vi.fn()
  const timer = new ExecuteTimer(100, onTimeout)
  timer.waits(true)
  timer.waits(true)
  timer.waits(false)
  vi.advanceTimersByTime(1000)
  expect(onTimeout).not.toHaveBeenCalled()
  timer.waits(false)
  vi.advanceTimersByTime(100)
  expect(onTimeout).toHaveBeenCalledOnce()
})

it("an execution that has ended is not timed any more", () => {
  const onTimeout = vi.fn()
  const timer = new ExecuteTimer(100, onTimeout)
  timer.waits(true)
  timer.stop()
  timer.waits(false)
  vi.advanceTimersByTime(1000)
  expect(onTimeout).not.toHaveBeenCalled()
})
