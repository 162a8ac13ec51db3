/**
 * A timer for one call, on the clock of its owner: the test clock in tests. The resolution is that of event loop
 * timers, one millisecond; owners that need more read the clock.
 */
import { Exit, type Fiber } from "effect"

export class Alarm {
  readonly #sleep: (millis: number) => Fiber.Fiber<void>
  readonly #ring: () => void
  #sleeping: Fiber.Fiber<void> | undefined

  constructor(sleep: (millis: number) => Fiber.Fiber<void>, ring: () => void) {
    this.#sleep = sleep
    this.#ring = ring
  }

  /** Sets the alarm to this number of milliseconds, at least 0; replaces an earlier setting. */
  set(millis: number): void {
    this.clear()
    const fiber = this.#sleep(wholeNanos(millis))
    this.#sleeping = fiber
    fiber.addObserver((exit) => {
      if (this.#sleeping === fiber && Exit.isSuccess(exit)) this.#ring()
    })
  }

  clear(): void {
    const fiber = this.#sleeping
    this.#sleeping = undefined
    fiber?.interruptUnsafe()
  }
}

/** Rounding errors of times in milliseconds stay below this many nanoseconds, unless a time is years away. */
const roundingError = 1e-3

/**
 * Rounded up to whole nanoseconds, as clocks count. An alarm of a fraction would ring before its time, and its owner
 * would set it again without end.
 */
const wholeNanos = (millis: number): number =>
  millis <= 0 ? millis : Math.max(1, Math.ceil(millis * 1e6 - roundingError)) / 1e6
