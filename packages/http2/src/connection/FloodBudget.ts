/**
 * Limits frames that cost their sender nothing and cause work: settings, pings, priorities, resets, window updates,
 * empty frames, frames of closed streams, and requests that are refused. A flood of them ends the connection.
 *
 * The limit is a burst with a rate. Frames that carry a request or data allow further ones, because clients send some
 * window updates and pings for each of them.
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"

/** Such frames that a connection may always send at once. */
export const burst = 20_000

/** Such frames per second that a connection may send on its own. */
export const perSecond = 1_000

/** Such frames that a frame with data or a header block allows. */
export const perUsefulFrame = 4

/** Cost of an error, in such frames. */
export const errorCost = 10

export class FloodBudget {
  /** Monotonic time in milliseconds. */
  now: number
  #remaining = burst
  #refilledAt: number

  constructor(now: number) {
    this.now = now
    this.#refilledAt = now
  }

  /** A frame with data or a header block was received, or sent. */
  useful(): void {
    if (this.#remaining < burst) this.#remaining = Math.min(burst, this.#remaining + perUsefulFrame)
  }

  /**
   * Frames that cause work were received.
   * @throws ConnectionError if there were too many
   */
  spend(frames: number): void {
    this.#remaining -= frames
    if (this.#remaining >= 0) return
    const seconds = Math.max(0, (this.now - this.#refilledAt) / 1000)
    this.#remaining = Math.min(burst, this.#remaining + seconds * perSecond)
    this.#refilledAt = this.now
    if (this.#remaining >= 0) return
    throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, "too many frames without data")
  }
}
