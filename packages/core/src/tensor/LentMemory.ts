/**
 * Memory of an instance that others may read until the instance needs it again. A batch that leaves its state where it
 * was computed saves a copy, and often a second one: the next batch may read it there.
 */

/** Holds views of lent memory. */
export interface Borrower {
  /** The memory changes after this call: the borrower copies what it still needs. */
  readonly giveBack: (memory: LentMemory) => void
}

export class LentMemory {
  readonly #borrowers: Array<Borrower> = []

  /** The borrower holds views of this memory from now on. */
  lend(borrower: Borrower): void {
    this.#borrowers.push(borrower)
  }

  /** Call before the memory changes. */
  reclaim(): void {
    for (const borrower of this.#borrowers) borrower.giveBack(this)
    this.#borrowers.length = 0
  }
}
