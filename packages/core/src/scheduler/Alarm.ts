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
    const fiber = this.#sleep(millis)
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
