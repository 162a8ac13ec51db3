/** Seeded random numbers, so that two runs send the same values. Not cryptographically secure. */
export interface Random {
  /** At least 0 and below 1. */
  readonly next: () => number
}

/** Mulberry32: 32 bits of state, and enough for tensors and arrivals. */
export const make = (seed: number): Random => {
  let state = seed | 0
  return {
    next: () => {
      state = (state + 0x6d2b79f5) | 0
      let bits = Math.imul(state ^ (state >>> 15), state | 1)
      bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
      return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
    },
  }
}
