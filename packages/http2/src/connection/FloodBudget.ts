/**
 * Limits frames that cost their sender nothing and cause work: settings, pings, priorities, resets, window updates,
 * empty frames, frames of closed streams, and requests that are refused. A flood of them ends the connection.
 *
 * The limit is a burst with a rate. Frames that carry a request or data allow further ones, because clients send some
 * window updates and pings for each of them.
 */

/** Such frames that a connection may always send at once. */
export const burst = 20_000

/** Such frames per second that a connection may send on its own. */
export const perSecond = 1_000

/** Such frames that a frame with data or a header block allows. */
export const perUsefulFrame = 4

export class FloodBudget {
  #remaining = burst
  #refilledAt: number

  /** `now`: monotonic time in milliseconds. */
  constructor(now: number) {
    this.#refilledAt = now
  }

  /** A frame with data or a header block was received, or sent. */
  useful(): void {
    if (this.#remaining < burst) this.#remaining = Math.min(burst, this.#remaining + perUsefulFrame)
  }

  /** Frames that cause work were received. Returns false if there were too many. */
  spend(frames: number, now: number): boolean {
    this.#remaining -= frames
    if (this.#remaining >= 0) return true
    this.#remaining = Math.min(burst, this.#remaining + Math.max(0, (now - this.#refilledAt) / 1000) * perSecond)
    this.#refilledAt = now
    return this.#remaining >= 0
  }
}
