/**
 * Lets the connections of a process read in turns. Node reads a socket until nothing is left in it, so a connection
 * with much to read would delay all others by the time that its requests take. Here it waits for the next turn of the
 * event loop once it has had its share of one, which is small while others read as well.
 *
 *   turn of the loop   ├─ a a a ─┼─ b ─┼─ c ─┼─ replies, batches ─┤├─ a a a ─┼─ …
 *                           └ its share, and the rest of a waits ──┘
 */

/** Milliseconds of a turn that all connections together should take; a part of a chunk of each is read in any case. */
const budget = 4

/** Largest share of one connection in milliseconds, while others read. */
const sharedBudget = 0.5

/** A connection counts as reading for so many milliseconds after the last time. */
const memory = 100

/** A connection that reads. */
export interface Reader {
  /** It may read again. */
  readonly resume: () => void
  /** The last turn in which it has read, the milliseconds that this took, and its last read. Changed here alone. */
  turn: number
  spent: number
  lastRead: number
}

export class ReadTurns {
  readonly #afterReads: (call: () => void) => void
  #turn = 0
  /** The last read of any connection. */
  #lastRead = -1
  /** Until when several connections read. */
  #sharedUntil = -Infinity
  /** Connections that have read in this turn. */
  #readers = 0
  /** Milliseconds for each of them, by their number in the last turn. */
  #share = budget
  #waiting: Array<Reader> = []
  readonly #next = () => {
    this.#turn += 1
    this.#share = budget / Math.max(1, this.#readers)
    this.#readers = 0
    for (const reader of this.#waiting.splice(0)) reader.resume()
  }

  /** `afterReads` calls back once no socket is left to read in this turn. */
  constructor(afterReads: (call: () => void) => void) {
    this.#afterReads = afterReads
  }

  /**
   * A connection has read a part of a chunk until now, and its requests took this many milliseconds. Returns whether it
   * has had its share: it must read nothing more until `resume` is called.
   */
  hasRead(reader: Reader, milliseconds: number, now: number): boolean {
    if (reader.lastRead !== this.#lastRead) this.#sharedUntil = now + memory
    reader.lastRead = this.#lastRead += 1
    if (this.#readers === 0) this.#afterReads(this.#next)
    if (reader.turn !== this.#turn) {
      reader.turn = this.#turn
      reader.spent = 0
      this.#readers += 1
    }
    reader.spent += milliseconds
    const share = now < this.#sharedUntil ? Math.min(sharedBudget, this.#share) : this.#share
    if (reader.spent < share) return false
    this.#waiting.push(reader)
    return true
  }
}

/** Those of this process. */
export const readTurns = new ReadTurns((call) => void setImmediate(call))
