/**
 * The time that callers without a deadline wait for an answer before they leave, learned from those that have left.
 * Admission by this time keeps an overloaded queue from work that nobody waits for. Infinite until enough callers have
 * left, and again once none has left for some time. Pure data without a clock: times are arguments, in nanoseconds.
 *
 * The value falls to a little less than the shortest time after which callers leave. It rises slowly, so that some
 * callers leave as long as any have too little patience, and at once with an answer to a caller that has waited longer.
 */

/** The part by which each request that ends changes the share of those that were left. */
const recent = 1 / 64

/** So many of the recent requests must have been left before the value applies. */
const enough = 0.1

/** Largest change by a caller that leaves earlier, as a part of the value. */
const lowered = 1 / 8

/** The part of a caller's time that an answer should take at most. */
const safe = 0.9

/** Rise in each unit of time. */
const rise = 0.003

/** The part of the difference by which an answer after a longer time raises the value. */
const refuted = 1 / 4

/** A caller that leaves earlier has not waited for an answer, and tells nothing of those that do. */
const shortest = 20e6

/** The value is forgotten after this time, or this multiple of it, without any caller that leaves. */
const memory = 10e9
const memoryFactor = 100

export class Patience {
  #value = Infinity
  /** The time of `#value`. */
  #at = 0
  /** When the last caller left. */
  #lastLeft = -Infinity
  /** The share of the recent requests that were left. */
  #left = 0
  #applies = false

  /** Infinite if it is unknown. */
  at(now: number): number {
    if (this.#isOld(now)) this.#forget()
    return this.#applies ? this.#value + (now - this.#at) * rise : Infinity
  }

  /** A caller has left after this time. */
  left(time: number, now: number): void {
    if (time < shortest) return
    this.#advance(now)
    this.#lastLeft = now
    this.#left += (1 - this.#left) * recent
    const wanted = time * safe
    if (wanted < this.#value) {
      this.#value = this.#value === Infinity ? wanted : Math.max(wanted, this.#value * (1 - lowered))
    }
    this.#applies ||= this.#left >= enough
  }

  /** A caller was still there after this time, and has its answer. */
  answered(time: number, now: number): void {
    if (this.#value === Infinity) return
    this.#advance(now)
    this.#left -= this.#left * recent
    if (time > this.#value) this.#value += (time - this.#value) * refuted
  }

  #advance(now: number): void {
    if (this.#isOld(now)) this.#forget()
    this.#value += (now - this.#at) * rise
    this.#at = now
  }

  #isOld(now: number): boolean {
    return this.#value < Infinity && now - this.#lastLeft > Math.max(memory, memoryFactor * this.#value)
  }

  #forget(): void {
    this.#value = Infinity
    this.#left = 0
    this.#applies = false
  }
}
