/**
 * One call at a time to come, on the clock of whoever made it: the test clock in tests. Whole milliseconds at best, as
 * that is what timers of an event loop count; who needs it sooner asks the clock itself.
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

  /** Rings after so many milliseconds, at least 0; not at any time that was set before. */
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
