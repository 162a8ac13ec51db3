/** Clock of an open loop: the current time, and a callback at a given time, accurate to the microsecond. */
export interface Clock {
  /** Current time in milliseconds, as `performance.now()`. */
  readonly now: () => number
  /** Calls `call` at time `at`, or as soon as possible. Replaces an earlier call that is pending. */
  readonly wake: (at: number, call: () => void) => void
  readonly close: () => void
}
