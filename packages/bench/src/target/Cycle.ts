/** Things that take turns: the requests of a target that has several. */
export class Cycle<A> {
  readonly #first: A
  readonly #others: ReadonlyArray<A>
  #next = 0

  constructor(first: A, others: ReadonlyArray<A>) {
    this.#first = first
    this.#others = others
  }

  next(): A {
    const current = this.#next === 0 ? this.#first : (this.#others[this.#next - 1] ?? this.#first)
    this.#next = this.#next === this.#others.length ? 0 : this.#next + 1
    return current
  }
}
