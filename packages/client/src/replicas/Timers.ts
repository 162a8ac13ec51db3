/** Time and chance of the policies, so that tests can replace them by virtual ones. */
import type { Cancel } from "@nereid/core/internal/request/Request"

export interface Timers {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Runs a function later, unless it is cancelled. The program stays alive for it. */
  readonly after: (millis: number, run: () => void) => Cancel
  /** The same for work that no call waits for: the program may end before. */
  readonly inBackground: (millis: number, run: () => void) => Cancel
  /** A number from 0 to 1, without 1. */
  readonly random: () => number
}

/** Longer timers would fire at once. */
const maxTimer = 2 ** 31 - 1

const start = (millis: number, run: () => void) => setTimeout(run, Math.min(Math.max(0, millis), maxTimer))

export const system: Timers = {
  now: () => performance.now(),
  after: (millis, run) => {
    const timer = start(millis, run)
    return () => clearTimeout(timer)
  },
  inBackground: (millis, run) => {
    const timer: { readonly unref?: () => void } & ReturnType<typeof start> = start(millis, run)
    // Timers of browsers are numbers.
    timer.unref?.()
    return () => clearTimeout(timer)
  },
  random: Math.random,
}
