/** Room for bodies in a ring of bytes. Bodies leave in the order in which they came. `ring.py` is its twin. */

/** Bodies begin at multiples of this. */
const alignment = 64

/** It uses the first bytes again as soon as it can, so few pages are touched. */
export class SharedRing {
  readonly #capacity: number
  /** Offsets of the bodies, the oldest first. */
  readonly #starts: Array<number> = []
  #at = 0
  /** Whether the next body lies before the oldest one. */
  #isWrapped = false

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Number of bodies. */
  get size(): number {
    return this.#starts.length
  }

  /** Offset of room for `length` bytes; undefined if there is none. */
  take(length: number): number | undefined {
    const size = Math.ceil(length / alignment) * alignment
    const oldest = this.#starts[0] ?? 0
    if (this.#starts.length === 0) {
      this.#at = 0
      this.#isWrapped = false
    }
    const isFull = this.#at + size > this.#capacity
    if (!this.#isWrapped && (oldest >= 2 * size || (isFull && oldest >= size))) {
      this.#at = 0
      this.#isWrapped = true
    }
    if (this.#at + size > (this.#isWrapped ? oldest : this.#capacity)) return undefined
    const start = this.#at
    this.#starts.push(start)
    this.#at += size
    return start
  }

  /** Removes the oldest bodies, of which there must be as many. */
  release(number: number): void {
    for (let index = 0; index < number; index++) {
      const start = this.#starts.shift() ?? 0
      if ((this.#starts[0] ?? start) < start) this.#isWrapped = false
    }
  }
}
