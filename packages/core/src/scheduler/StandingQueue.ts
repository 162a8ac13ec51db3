/**
 * Notices a queue that stands: for some time, each request that arrives would wait for long. It answers no more than a
 * short queue, which keeps the instances as busy, but each of its requests is late after the smallest pause. So a long
 * wait is allowed in a burst, and not while the queue stands. Pure data without a clock: times are arguments, in
 * nanoseconds.
 *
 *   long waits    ── all, for an interval ──►    stands    ── none, for an interval ──►    long waits
 *   are allowed                                                                            are allowed
 */

/** In nanoseconds. */
const interval = 100e6

export class StandingQueue {
  #stands = false
  #endsAt = -Infinity
  /** Whether any wait of the interval was long, and any was not. */
  #hasLong = false
  #hasShort = false

  /** A request arrives now, and would wait for long or not. Returns whether it may. */
  admits(isLong: boolean, now: number): boolean {
    if (now >= this.#endsAt) this.#begin(now)
    if (isLong) this.#hasLong = true
    else this.#hasShort = true
    return !isLong || !this.#stands
  }

  #begin(now: number): void {
    // Of an interval that ended long ago, nothing follows.
    const isRecent = now < this.#endsAt + interval
    this.#stands = isRecent && this.#hasLong && (this.#stands || !this.#hasShort)
    this.#endsAt = now + interval
    this.#hasLong = this.#hasShort = false
  }
}
