import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { type Limit, throttled } from "./LimitReports.ts"

const recorded = () => {
  const lines: Array<string> = []
  const counted: Array<Limit> = []
  const reports = throttled(
    (line) => lines.push(line),
    (limit) => counted.push(limit),
  )
  return { lines, counted, reports }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test("the first action of a limit is logged at once", () => {
  const { lines, reports } = recorded()
  reports.acted("pings", "one")
  expect(lines).toEqual(["one"])
})

test("further actions within a second share one line, with their number, and all are counted", () => {
  const { lines, counted, reports } = recorded()
  for (const message of ["one", "two", "three", "four"]) reports.acted("pings", message)
  vi.advanceTimersByTime(999)
  expect(lines).toEqual(["one"])
  vi.advanceTimersByTime(1)
  expect(lines).toEqual(["one", "four (and 2 more in the last second)"])
  expect(counted).toEqual(["pings", "pings", "pings", "pings"])
})

test("a limit that acts all the time logs one line a second", () => {
  const { lines, reports } = recorded()
  for (let millis = 0; millis < 5_000; millis += 10) {
    reports.acted("pings", "again")
    vi.advanceTimersByTime(10)
  }
  expect(lines).toHaveLength(6)
})

test("a second without an action ends the silence", () => {
  const { lines, reports } = recorded()
  reports.acted("pings", "one")
  vi.advanceTimersByTime(1_000)
  reports.acted("pings", "two")
  expect(lines).toEqual(["one", "two"])
})

test("limits are reported independently", () => {
  const { lines, reports } = recorded()
  reports.acted("pings", "a ping")
  reports.acted("stream_resets", "a reset")
  expect(lines).toEqual(["a ping", "a reset"])
})
