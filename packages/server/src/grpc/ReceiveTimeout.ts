/**
 * What is to be over within one and the same time, for each from when it began: one timer for all of them, and nothing that
 * is costlier than a list for one that is over in time, as nearly all are. The first to begin is the first to expire.
 */
import * as Timer from "../port/Timer.ts"

/** What can expire; in one list at a time. */
export abstract class Expiring {
  /** Set as long as it is awaited. */
  expiresAt: number | undefined
  previous: Expiring | undefined
  next: Expiring | undefined

  /** It was not over in time, and is awaited no more. */
  abstract expire(): void
}

export class Expiry {
  readonly milliseconds: number
  #first: Expiring | undefined
  #last: Expiring | undefined
  #isTimerSet = false

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds
  }

  /** Has it begun. Not twice. */
  add(one: Expiring): void {
    one.expiresAt = performance.now() + this.milliseconds
    one.previous = this.#last
    if (this.#last === undefined) this.#first = one
    else this.#last.next = one
    this.#last = one
    if (!this.#isTimerSet) this.#setTimer(this.milliseconds)
  }

  /** It is over. Harmless where it is not awaited. */
  remove(one: Expiring): void {
    if (one.expiresAt === undefined) return
    const { previous, next } = one
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    one.expiresAt = one.previous = one.next = undefined
  }

  /** It stays set when nothing is awaited, so that whatever comes next need not set it. */
  #setTimer(milliseconds: number): void {
    this.#isTimerSet = true
    Timer.start(() => this.#expire(), Math.max(1, Math.ceil(milliseconds)))?.unref()
  }

  #expire(): void {
    this.#isTimerSet = false
    const now = performance.now()
    for (let one = this.#first; one?.expiresAt !== undefined; one = this.#first) {
      if (one.expiresAt > now) return this.#setTimer(one.expiresAt - now)
      this.remove(one)
      one.expire()
    }
  }
}
