/** Counts the problems of replies, and keeps the first few distinct messages. */
export class Problems {
  readonly #counts = new Map<string, number>()
  #count = 0

  add(problem: string, times = 1): void {
    this.#count += times
    const known = this.#counts.get(problem)
    if (known !== undefined || this.#counts.size < distinct) this.#counts.set(problem, (known ?? 0) + times)
  }

  /** All, those included that are not among `messages`. */
  get count(): number {
    return this.#count
  }

  get messages(): ReadonlyMap<string, number> {
    return this.#counts
  }
}

/** Some servers put a number or a time into each of their messages. */
const distinct = 8
