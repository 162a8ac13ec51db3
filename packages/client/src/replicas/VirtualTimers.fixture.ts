/** Timers on a clock that tests move, with seeded random numbers. */
import * as Random from "@nereid/core/internal/synthetic/Random"
import type { Timers } from "./Timers.ts"

interface Timer {
  readonly at: number
  readonly run: () => void
}

export class VirtualTimers implements Timers {
  #now = 0
  readonly #timers = new Set<Timer>()
  readonly random: () => number

  constructor(seed = 1) {
    this.random = Random.make(seed).next
  }

  readonly now = () => this.#now

  readonly after = (millis: number, run: () => void) => {
    const timer = { at: this.#now + millis, run }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  readonly inBackground = this.after

  /** Timers that wait. */
  get size(): number {
    return this.#timers.size
  }

  /** Moves the clock, and runs the timers on the way, in the order of their times. */
  advance(millis: number): void {
    const end = this.#now + millis
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).toSorted((one, other) => one.at - other.at)
      if (next === undefined) break
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.run()
    }
    this.#now = end
  }
}
