/**
 * Notices an overloaded queue that stands: for some time, each request that arrives would wait for long, and some
 * would be late. Such a queue answers no more than a short one, which keeps the instances as busy, but each of its
 * requests is late after the smallest pause. So a long wait is allowed in a burst, and where all requests are answered
 * in time, and not while the queue stands. Pure data without a clock: times are arguments, in nanoseconds.
 *
 *   long waits     ── all long and some late, ──►    stands    ── none long, ──►    long waits
 *   are allowed       for an interval                             for an interval   are allowed
 */

/** In nanoseconds. */
const interval = 100e6

/** A long one is in time, and takes much of that time. */
export type Wait = "short" | "long" | "late"

export class StandingQueue {
  #stands = false
  #endsAt = -Infinity
  /** Whether any wait of the interval was so. */
  #hasShort = false
  #hasLong = false
  #hasLate = false

  /** A request arrives now, with such a wait ahead. Returns whether it may wait. */
  admits(wait: Wait, now: number): boolean {
    if (now >= this.#endsAt) this.#begin(now)
    if (wait === "short") this.#hasShort = true
    else this.#hasLong = true
    if (wait === "late") this.#hasLate = true
    return wait === "short" || (wait === "long" && !this.#stands)
  }

  #begin(now: number): void {
    // Of an interval that ended long ago, nothing follows.
    const isRecent = now < this.#endsAt + interval
    this.#stands = isRecent && this.#hasLong && (this.#stands || (this.#hasLate && !this.#hasShort))
    this.#endsAt = now + interval
    this.#hasShort = this.#hasLong = this.#hasLate = false
  }
}
