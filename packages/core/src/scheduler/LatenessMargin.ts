/**
 * The time by which requests end later than predicted, as a margin that 99 of 100 requests keep. It grows fast with
 * each request beyond it, and shrinks slowly with each request within it. Pure data, in any unit of time.
 */

/** Of the requests, so many in each one beyond the margin may stay within it. */
const within = 99

export class LatenessMargin {
  #value = 0

  get value(): number {
    return this.#value
  }

  /** A request has ended this much later than predicted. `scale`: the usual size of an error. */
  ended(lateness: number, scale: number): void {
    const step = scale / 8 + this.#value / 16
    if (lateness > this.#value) this.#value += step
    else this.#value = Math.max(0, this.#value - step / within)
  }
}
