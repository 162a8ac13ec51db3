/**
 * The numbered requests of one sequence, of which some arrive ahead of others: each waits for those before it, within a
 * window. Pure; NumberedRequests.ts submits them.
 *
 *   numbers   1 2 3   4   5 6 … 20   21 …
 *             seen    │   window      beyond
 *                   expected
 */

/** Where a number is. `waiting`: ahead of the expected one. */
export type Place = "seen" | "expected" | "waiting" | "beyond"

export class RequestWindow<T> {
  readonly #size: number
  readonly #waiting = new Map<number, T>()
  #expected = 1

  /** `size`: the numbers above the expected one that may wait. */
  constructor(size: number) {
    this.#size = size
  }

  get expected(): number {
    return this.#expected
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Expects this number next, in place of a lower one. No effect while requests wait. */
  skipTo(number: number): void {
    if (this.isEmpty && number > this.#expected) this.#expected = number
  }

  placeOf(number: number): Place {
    if (number < this.#expected) return "seen"
    if (number === this.#expected) return "expected"
    return number <= this.#expected + this.#size ? "waiting" : "beyond"
  }

  get(number: number): T | undefined {
    return this.#waiting.get(number)
  }

  wait(number: number, request: T): void {
    this.#waiting.set(number, request)
  }

  delete(number: number): void {
    this.#waiting.delete(number)
  }

  /** The expected request was accepted. Takes out the next one if it waits. */
  advance(): T | undefined {
    this.#expected += 1
    const next = this.#waiting.get(this.#expected)
    this.#waiting.delete(this.#expected)
    return next
  }

  /** Takes out all, in the order of their numbers. */
  clear(): ReadonlyArray<T> {
    const all = [...this.#waiting].toSorted(([a], [b]) => a - b).map(([, request]) => request)
    this.#waiting.clear()
    return all
  }
}
