/**
 * Sequences in the order in which they were added. A sequence joins and leaves in constant time, and is in one list at
 * most. A Map or Set would pass over all removed entries to find its first one.
 */

/** Place of a sequence in a list. */
export interface Links<T extends Linked<T>> {
  list: RunList<T> | undefined
  previous: T | undefined
  next: T | undefined
}

export interface Linked<T extends Linked<T>> {
  readonly links: Links<T>
}

export class RunList<T extends Linked<T>> {
  first: T | undefined
  #last: T | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  add(run: T): void {
    run.links.list = this
    run.links.previous = this.#last
    if (this.#last === undefined) this.first = run
    else this.#last.links.next = run
    this.#last = run
    this.#size += 1
  }

  /** Has no effect for a sequence of another list. */
  delete(run: T): void {
    const { links } = run
    if (links.list !== this) return
    if (links.previous === undefined) this.first = links.next
    else links.previous.links.next = links.next
    if (links.next === undefined) this.#last = links.previous
    else links.next.links.previous = links.previous
    links.list = links.previous = links.next = undefined
    this.#size -= 1
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let run = this.first; run !== undefined; run = run.links.next) yield run
  }
}
