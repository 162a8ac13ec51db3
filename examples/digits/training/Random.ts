/** Seeded random numbers of several distributions, which make training reproducible. Not suitable for cryptography. */

export interface Random {
  /** Uniform in [0, 1). */
  readonly next: () => number
  /** Uniform in [-limit, limit). */
  readonly around: (limit: number) => number
  /** Normal with mean 0 and deviation 1. */
  readonly normal: () => number
  /** Shuffles in place (Fisher–Yates). */
  readonly shuffle: (items: Uint32Array) => void
}

export const make = (seed: number): Random => {
  let state = seed | 0
  // Mulberry32.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    around: (limit) => (2 * next() - 1) * limit,
    // Box–Muller; 1 - next() is never 0, so its logarithm is finite.
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    shuffle: (items) => {
      for (let last = items.length - 1; last > 0; last--) {
        const other = Math.floor(next() * (last + 1))
        const moved = items[last]!
        items[last] = items[other]!
        items[other] = moved
      }
    },
  }
}
