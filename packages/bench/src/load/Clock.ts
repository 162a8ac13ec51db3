/** Clock of an open loop: the current time, and a callback at a given time, accurate to the microsecond. */
export interface Clock {
  /** Milliseconds, as `performance.now()` counts. */
  readonly now: () => number
  /** Calls at that time, or as soon as possible; a call that was asked for before is forgotten. */
  readonly wake: (at: number, call: () => void) => void
  readonly close: () => void
}
