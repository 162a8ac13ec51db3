/** A seeded sequence of pseudo-random choices, so that failures are reproducible (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** The choices of one of many: their sequences have nothing in common. */
  static of(seed: number, index: number): Random {
    const start = new Random(Math.imul(seed, 0x9e3779b1))
    return new Random(start.bits() ^ Math.imul(index + 1, 0x85ebca6b))
  }

  /** 32 bits. */
  bits(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** An integer from 0 up to `limit`, which it never is. */
  below(limit: number): number {
    return Math.floor((this.bits() / 2 ** 32) * limit)
  }

  chance(probability: number): boolean {
    return this.bits() / 2 ** 32 < probability
  }

  pick<A>(choices: ReadonlyArray<A>): A {
    const choice = choices[this.below(choices.length)]
    if (choice === undefined) throw new TypeError("There is nothing to choose from")
    return choice
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.bits())
  }
}
