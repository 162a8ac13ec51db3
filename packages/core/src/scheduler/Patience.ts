/**
 * The time that callers without a deadline wait for an answer before they leave, learned from those that have left.
 * Admission by this time keeps an overloaded queue from work that nobody waits for. Infinite until enough callers have
 * left, and again once none has left for some time. Pure data without a clock: times are arguments, in nanoseconds.
 *
 * The value falls to a little less than the shortest time after which callers leave. It rises slowly, so that some
 * callers leave as long as any have too little patience, and at once with an answer to a caller that has waited longer.
 * It does not apply to a connection whose own callers do not leave.
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

/** A connection is patient if so many of its requests have ended, and less than this share of them was left. */
const known = 16
const patient = 0.02

/** The requests of one connection since callers of any have left. */
interface Callers {
  ended: number
  /** The share of the recent ones that were left. */
  left: number
}

export class Patience {
  #value = Infinity
  /** The time of `#value`. */
  #at = 0
  /** When the last caller left. */
  #lastLeft = -Infinity
  /** The share of the recent requests that were left. */
  #left = 0
  #applies = false
  #connections = new WeakMap<object, Callers>()

  /** For a caller of this connection; infinite if it is unknown. */
  at(now: number, connection?: object): number {
    if (this.#isOld(now)) this.#forget()
    if (!this.#applies) return Infinity
    const callers = connection && this.#connections.get(connection)
    if (callers !== undefined && callers.ended >= known && callers.left < patient) return Infinity
    return this.#value + (now - this.#at) * rise
  }

  /** A caller has left after this time. */
  left(time: number, now: number, connection?: object): void {
    if (time < shortest) return
    this.#advance(now)
    const callers = this.#callersOf(connection)
    callers.ended += 1
    callers.left += (1 - callers.left) * recent
    this.#lastLeft = now
    this.#left += (1 - this.#left) * recent
    const wanted = time * safe
    if (wanted < this.#value) {
      this.#value = this.#value === Infinity ? wanted : Math.max(wanted, this.#value * (1 - lowered))
    }
    this.#applies ||= this.#left >= enough
  }

  /** A caller was still there after this time, and has its answer. */
  answered(time: number, now: number, connection?: object): void {
    if (this.#value === Infinity) return
    this.#advance(now)
    const callers = this.#callersOf(connection)
    callers.ended += 1
    callers.left -= callers.left * recent
    this.#left -= this.#left * recent
    if (time > this.#value) this.#value += (time - this.#value) * refuted
  }

  #callersOf(connection: object | undefined): Callers {
    const found = connection && this.#connections.get(connection)
    if (found !== undefined) return found
    const callers = { ended: 0, left: 0 }
    if (connection !== undefined) this.#connections.set(connection, callers)
    return callers
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
    this.#connections = new WeakMap()
  }
}
