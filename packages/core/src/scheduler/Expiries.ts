/** Entries by the time at which they expire. Pure data, in any unit of time. */
export class Expiries<T> {
  readonly #times = new Map<T, number>()
  #earliest = Infinity

  /** A lower bound of all expiry times; not exact after the earliest entry has been deleted. */
  get earliest(): number {
    return this.#earliest
  }

  add(entry: T, time: number): void {
    this.#times.set(entry, time)
    if (time < this.#earliest) this.#earliest = time
  }

  /** Deletes an entry; no effect if it does not exist. */
  delete(entry: T): void {
    this.#times.delete(entry)
  }

  /** Takes out those whose time has come, each once, in the order in which they were added. */
  take(now: number): ReadonlyArray<T> {
    if (now < this.#earliest) return []
    const taken: Array<T> = []
    this.#earliest = Infinity
    for (const [entry, time] of this.#times) {
      if (time > now) {
        if (time < this.#earliest) this.#earliest = time
      } else {
        this.#times.delete(entry)
        taken.push(entry)
      }
    }
    return taken
  }
}
