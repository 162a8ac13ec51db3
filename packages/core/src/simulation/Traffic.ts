/**
 * The requests of a simulation, in order of time: generated at a rate, or from any iterable, such as a log.
 * Simulation.ts executes them.
 */
import type { Duration } from "effect"
import * as Random from "../synthetic/Random.ts"
import * as Gaps from "../synthetic/Arrivals.ts"

/** A request that comes. */
export interface Arrival {
  /** Milliseconds since the beginning; not before that of the one ahead of it. */
  readonly at: number
  /** Default 1. */
  readonly rows?: number
  /**
   * Only requests of one group share a batch, as with other shapes, or other values of what the model groups by.
   * Default "".
   */
  readonly group?: string
  /** As in a call's options. */
  readonly priority?: number | bigint
  /** As in a call's options. */
  readonly queueTimeout?: Duration.Input
  /** Time from its arrival to its deadline, as in a call's options. Default: it has no deadline. */
  readonly timeout?: Duration.Input
  /** Time after which its caller leaves, which the server does not know. Default: the caller stays. */
  readonly patience?: Duration.Input
}

/** Rate, duration and kind of synthetic requests. */
export interface TrafficOptions {
  readonly perSecond: number
  /** How long they keep coming. */
  readonly seconds: number
  /** Of each of them. Default 1. */
  readonly rows?: number
  /** Time from arrival to deadline of each of them. Default: they have no deadline. */
  readonly timeout?: Duration.Input
  /** Time after which the caller of each of them leaves, which the server does not know. Default: all stay. */
  readonly patience?: Duration.Input
}

/** One every so often. */
export const constant = (options: TrafficOptions): Iterable<Arrival> => arrivals(options, Gaps.constant)

/** Poisson arrivals, as from many independent callers; reproducible by seed. Default seed 1. */
export const poisson = ({ seed = 1, ...options }: TrafficOptions & { readonly seed?: number }): Iterable<Arrival> =>
  arrivals(options, (perSecond) => Gaps.poisson(perSecond, Random.make(seed)))

const arrivals = (
  { perSecond, seconds, rows = 1, timeout, patience }: TrafficOptions,
  gaps: (perSecond: number) => Gaps.Arrivals,
): Iterable<Arrival> => {
  if (!(perSecond > 0 && perSecond < Infinity)) throw new RangeError(`perSecond must be above 0: ${perSecond}`)
  if (!(seconds > 0 && seconds < Infinity)) throw new RangeError(`seconds must be above 0: ${seconds}`)
  const limits = { ...(timeout === undefined ? {} : { timeout }), ...(patience === undefined ? {} : { patience }) }
  return {
    *[Symbol.iterator]() {
      const { next } = gaps(perSecond)
      for (let at = next(); at < seconds * 1000; at += next()) yield { at, rows, ...limits }
    },
  }
}
