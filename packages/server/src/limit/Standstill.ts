/**
 * Time in which the event loop stood still: the process was stopped, got no CPU, or did one thing for long. What
 * clients have sent meanwhile is read at once, although it was sent over that time.
 *
 *   tick ─── interval ─── due ······ nothing runs ······ now, before the late tick
 *                          └───────── stood still ────────┘
 *
 * Reads come before late timers, so the time is known when the first bytes are read. The loop ticks only while somebody
 * watches it. A standstill shorter than the interval may not be seen.
 */
import { performance } from "node:perf_hooks"

/** Milliseconds between two ticks. */
const interval = 500

export class Standstill {
  /** A function, so that each connection can pass it on without one of its own. */
  readonly unwatch: () => void
  readonly #now: () => number
  #due = Infinity
  #total = 0
  /** The last standstill that has ended. */
  #last = 0
  #endedAt = -Infinity
  #watchers = 0
  #timer: NodeJS.Timeout | undefined

  /** `now`: monotonic time in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.unwatch = () => this.#unwatch()
  }

  /** Ticks until `unwatch` is called as often. */
  watch(): void {
    this.#watchers += 1
    if (this.#timer === undefined) {
      this.#due = this.#now() + interval
      this.#timer = setInterval(() => this.tick(), interval).unref()
    }
  }

  #unwatch(): void {
    this.#watchers -= 1
    if (this.#watchers > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#total = this.total
    this.#due = Infinity
  }

  tick(): void {
    const now = this.#now()
    const late = Math.max(0, now - this.#due)
    if (late > 0) {
      this.#total += late
      this.#last = late
      this.#endedAt = now
    }
    this.#due = now + interval
  }

  /** Milliseconds of all standstills so far, with the one that ends now. */
  get total(): number {
    return this.#total + Math.max(0, this.#now() - this.#due)
  }

  /**
   * Milliseconds that bytes which are read now may have waited for the loop. It reads what has waited for as long as it
   * stood still, at most.
   */
  get recent(): number {
    const now = this.#now()
    return Math.max(0, now - this.#due, now - this.#endedAt < this.#last ? this.#last : 0)
  }
}
