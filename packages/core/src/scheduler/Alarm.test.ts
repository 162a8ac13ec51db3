import * as fc from "fast-check"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { Alarm } from "./Alarm.ts"

/** The times of the sleeps that an alarm makes. */
const sleeps = (...settings: ReadonlyArray<number>): ReadonlyArray<number> => {
  const times: Array<number> = []
  const alarm = new Alarm(
    (millis) => {
      times.push(millis)
      return Effect.runFork(Effect.never)
    },
    () => {},
  )
  for (const millis of settings) alarm.set(millis)
  alarm.clear()
  return times
}

it("sleeps for whole nanoseconds, and for one at least if any time is left", () => {
  expect(sleeps(0, 2.5, 1.1, 3e-7, 1e-12, 1.000_000_4)).toEqual([0, 2.5, 1.1, 1e-6, 1e-6, 1.000_001])
})

it("never sleeps for less than it was set to, but for errors of rounding", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), (millis) => {
      const [slept = 0] = sleeps(millis)
      expect(slept * 1e6).toBeGreaterThan(millis * 1e6 - 0.5)
      expect(slept * 1e6).toBeLessThan(millis * 1e6 + 1.5)
      if (millis > 0) expect(Math.round(slept * 1e6)).toBeGreaterThan(0)
    }),
  )
})
