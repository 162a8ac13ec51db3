/** Sequences of a simulation: generated, or from any iterable, such as a log. SequenceSimulation.ts executes them. */
import { Duration } from "effect"
import * as Random from "../synthetic/Random.ts"
import * as Gaps from "../synthetic/Arrivals.ts"
import { requireInteger } from "./SimulatedNumber.ts"

/** A sequence that begins. */
export interface SequenceArrival {
  /** Milliseconds since the beginning; not before that of the one ahead of it. */
  readonly at: number
  /** Number of its requests, at least 1. */
  readonly requests: number
  /** Time from each response to the next request. A number is in milliseconds. Default 0. */
  readonly thinkTime?: Duration.Input
  /** Time without requests at which it expires. Default: the `maxIdle` of the simulation. */
  readonly maxIdle?: Duration.Input
}

/** Number, length and think time of synthetic sequences. */
export interface SequenceTrafficOptions {
  /** Number of sequences. */
  readonly count: number
  /** Sequences that begin per second, as from many independent callers. Default: all begin at once. */
  readonly perSecond?: number
  /** Requests of each sequence. */
  readonly requests: number
  /** Mean time from each response to the next request; exponentially distributed among sequences. Default 0. */
  readonly thinkTime?: Duration.Input
  /** Default 1. */
  readonly seed?: number
}

/**
 * Sequences that begin at a Poisson rate or at once; reproducible by seed.
 * @throws RangeError if a number is out of range
 */
export const sequences = ({
  count,
  perSecond = Infinity,
  requests,
  thinkTime = 0,
  seed = 1,
}: SequenceTrafficOptions): Iterable<SequenceArrival> => {
  requireInteger("count", count, 1)
  requireInteger("requests", requests, 1)
  if (!(perSecond > 0)) throw new RangeError(`perSecond must be above 0: ${perSecond}`)
  const mean = Duration.toMillis(Duration.fromInputUnsafe(thinkTime))
  return {
    *[Symbol.iterator]() {
      const random = Random.make(seed)
      const gaps = Gaps.poisson(perSecond, random)
      let at = 0
      for (let index = 0; index < count; index++) {
        at += gaps.next()
        yield { at, requests, thinkTime: -Math.log(1 - random.next()) * mean }
      }
    },
  }
}
