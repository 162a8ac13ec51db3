/** Iterates over a list in a circle: the requests of a target that has several. */
export class RoundRobin<A> {
  readonly #first: A
  readonly #rest: ReadonlyArray<A>
  #next = 0

  constructor(first: A, rest: ReadonlyArray<A>) {
    this.#first = first
    this.#rest = rest
  }

  next(): A {
    const current = this.#next === 0 ? this.#first : (this.#rest[this.#next - 1] ?? this.#first)
    this.#next = this.#next === this.#rest.length ? 0 : this.#next + 1
    return current
  }
}
