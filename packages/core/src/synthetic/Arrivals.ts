/** Inter-arrival times of independent requests. */
import type { Random } from "./Random.ts"

/** Generates the times between requests. */
export interface Arrivals {
  /** Milliseconds until the next one. */
  readonly next: () => number
}

/** Names of the distributions of the times between requests. */
export type Distribution = "constant" | "poisson"

/** One every so often. */
export const constant = (perSecond: number): Arrivals => ({ next: () => 1000 / perSecond })

/** Poisson arrivals, as from many independent callers. */
export const poisson = (perSecond: number, random: Random): Arrivals => ({
  next: () => (-Math.log(1 - random.next()) / perSecond) * 1000,
})
