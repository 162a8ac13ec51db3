/**
 * Lets the connections of a process read in turns. Node reads a socket until nothing is left in it, so a connection
 * with much to read would delay all others by the time that its requests take. Here it waits for the next turn of the
 * event loop once it has had its share of one.
 *
 *   turn of the loop   ├─ a a a ─┼─ b ─┼─ c ─┼─ replies, batches ─┤├─ a a a ─┼─ …
 *                           └ its share, and the rest of a waits ──┘
 */

/** Milliseconds of a turn that all connections together should take; a chunk of each is read in any case. */
const budget = 4

/** A connection that reads. */
export interface Reader {
  /** It may read again. */
  readonly resume: () => void
  /** The last turn in which it has read, and the milliseconds that this took. Changed here alone. */
  turn: number
  spent: number
}

export class ReadTurns {
  readonly #afterReads: (call: () => void) => void
  #turn = 0
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
   * A connection has read a chunk, whose requests took this many milliseconds. Returns whether it has had its share: it
   * must read nothing more until `resume` is called.
   */
  hasRead(reader: Reader, milliseconds: number): boolean {
    if (this.#readers === 0) this.#afterReads(this.#next)
    if (reader.turn !== this.#turn) {
      reader.turn = this.#turn
      reader.spent = 0
      this.#readers += 1
    }
    reader.spent += milliseconds
    if (reader.spent < this.#share) return false
    this.#waiting.push(reader)
    return true
  }
}

/** Those of this process. */
export const readTurns = new ReadTurns((call) => void setImmediate(call))
