/**
 * Timeouts of many entries with one timer. All entries of a list have the same timeout, so they expire in the order in
 * which they were added. An entry within its time costs two operations on a linked list.
 */
import * as Timer from "../port/Timer.ts"

/** Base of entries of the type `E`. An entry is in one list at a time. */
export class TimeoutEntry<E> {
  /** Set while the entry is in a list, as `performance.now()`. */
  expiresAt: number | undefined
  previous: E | undefined
  next: E | undefined
}

export class TimeoutList<E extends TimeoutEntry<E>> {
  readonly #milliseconds: number
  readonly #onExpire: (entry: E, now: number) => void
  #first: E | undefined
  #last: E | undefined
  #isTimerSet = false

  /** `onExpire` is called once for an entry that is late. The entry is no longer in the list then. */
  constructor(milliseconds: number, onExpire: (entry: E, now: number) => void) {
    this.#milliseconds = milliseconds
    this.#onExpire = onExpire
  }

  /** Starts the time of an entry that is not in the list. */
  add(entry: E, now: number): void {
    entry.expiresAt = now + this.#milliseconds
    entry.previous = this.#last
    if (this.#last === undefined) this.#first = entry
    else this.#last.next = entry
    this.#last = entry
    if (!this.#isTimerSet) this.#setTimer(this.#milliseconds)
  }

  /** Ends the time of an entry. Does nothing if the entry is not in the list. */
  remove(entry: E): void {
    if (entry.expiresAt === undefined) return
    const { previous, next } = entry
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    entry.expiresAt = entry.previous = entry.next = undefined
  }

  /** The timer stays set while the list is empty, so that the next entry need not set it. */
  #setTimer(milliseconds: number): void {
    this.#isTimerSet = true
    Timer.start(() => this.#expire(), Math.max(1, Math.ceil(milliseconds)))?.unref()
  }

  /** Entries that are added meanwhile, by `onExpire`, do not set a timer of their own. */
  #expire(): void {
    const now = performance.now()
    try {
      for (let entry = this.#first; entry?.expiresAt !== undefined; entry = this.#first) {
        if (entry.expiresAt > now) break
        this.remove(entry)
        this.#onExpire(entry, now)
      }
    } finally {
      // Also behind an `onExpire` that throws: the others expire all the same.
      const next = this.#first?.expiresAt
      if (next === undefined) this.#isTimerSet = false
      else this.#setTimer(next - now)
    }
  }
}
