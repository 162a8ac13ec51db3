/**
 * Runs a load at several levels in turn. Each level has a warm-up and then measured rounds, whose medians count. The
 * server's counters are read before and after each round.
 */
import * as Arrivals from "@nereid/core/internal/synthetic/Arrivals"
import type { Clock } from "./Clock.ts"
import * as ClosedLoop from "./ClosedLoop.ts"
import { Lane, openAll } from "./Lane.ts"
import type { Latencies } from "./Latencies.ts"
import * as Level from "./Level.ts"
import type { Target } from "../target/Load.ts"
import * as OpenLoop from "./OpenLoop.ts"
import * as Random from "@nereid/core/internal/synthetic/Random"
import type { Extent, Measured } from "./Round.ts"
import * as ServerCounters from "../target/ServerCounters.ts"

export interface SweepOptions {
  readonly target: Target
  readonly levels: ReadonlyArray<Level.Level | Level.Multiple>
  readonly rounds: number
  /** Extent of each round, and of the warm-up; undefined for no warm-up. */
  readonly extent: Extent
  readonly warmUp: Extent | undefined
  /** Number of connections, for a target with many requests per connection. */
  readonly connections: number
  /** Maximum requests in flight at a fixed rate. */
  readonly maxOutstanding: number
  /** Deadline of requests at a fixed rate. Default: none. */
  readonly deadline?: OpenLoop.Deadline | undefined
  /** Milliseconds without any reply after which a round ends. */
  readonly patience: number
  readonly seed: number
  readonly clock: Clock
  /** Reads the counters of the server; undefined if it does not provide them. */
  readonly statistics: () => Promise<ServerCounters.Counters | undefined>
  /** Before the warm-up, which is round 0, and each round. */
  readonly onRound?: (level: Level.Level | Level.Multiple, round: number) => void
}

export interface RoundResult extends Measured {
  readonly server: ServerCounters.ServerShare | undefined
  /** Lateness at a fixed rate; see OpenMeasured. */
  readonly lateness: Latencies | undefined
  readonly held: number
  readonly unsent: number
  /** Undefined without a deadline. */
  readonly goodput: OpenLoop.Goodput | undefined
}

export interface LevelResult {
  readonly level: Level.Level
  readonly rounds: ReadonlyArray<RoundResult>
}

/**
 * Runs the levels. Stops after a level without a valid reply, because the next ones would fail too.
 * @throws Error if no connection can be opened
 */
export async function* run(options: SweepOptions): AsyncGenerator<LevelResult, void> {
  for (const each of options.levels) {
    const level = "times" in each ? await rateOf(options, each) : each
    const lanes = await open(options, level)
    try {
      if (options.warmUp !== undefined) {
        options.onRound?.(each, 0)
        await measure(options, level, lanes, options.warmUp, 0)
      }
      const rounds: Array<RoundResult> = []
      for (let round = 1; round <= options.rounds; round++) {
        options.onRound?.(each, round)
        const before = await options.statistics()
        const measured = await measure(options, level, lanes, options.extent, round)
        rounds.push({ ...measured, server: ServerCounters.between(before, await options.statistics()) })
        if (isDead(measured)) break
      }
      yield { level, rounds }
      if (rounds.every(isDead)) return
    } finally {
      for (const lane of lanes) lane.close()
    }
  }
}

/** Measures the capacity, after a warm-up. */
const rateOf = async (options: SweepOptions, multiple: Level.Multiple): Promise<Level.OpenLevel> => {
  const { times, concurrency, distribution } = multiple
  const lanes = await open(options, { concurrency })
  try {
    options.onRound?.(multiple, 0)
    if (options.warmUp !== undefined) await measure(options, { concurrency }, lanes, options.warmUp, 0)
    const { perSecond: capacity } = await measure(options, { concurrency }, lanes, options.extent, 0)
    return { perSecond: times * capacity, distribution, overload: { times, capacity } }
  } finally {
    for (const lane of lanes) lane.close()
  }
}

/** An overloaded server may answer nothing in time, and more at the next level. */
const isDead = ({ requests, goodput }: Pick<RoundResult, "requests" | "goodput">): boolean =>
  requests === 0 && goodput === undefined

const open = async (options: SweepOptions, level: Level.Level): Promise<ReadonlyArray<Lane>> => {
  const { target, connections, maxOutstanding } = options
  const single = target.perConnection === 1
  if (!Level.isOpen(level))
    return openAll(target, single ? level.concurrency : Math.min(connections, level.concurrency))
  // The number of connections that a rate requires is unknown, so each is opened at its first use.
  return single ? Array.from({ length: maxOutstanding }, () => new Lane(target)) : openAll(target, connections)
}

const measure = async (
  { target, maxOutstanding, patience, seed, clock, deadline }: SweepOptions,
  level: Level.Level,
  lanes: ReadonlyArray<Lane>,
  extent: Extent,
  round: number,
): Promise<Omit<RoundResult, "server">> => {
  if (!Level.isOpen(level)) {
    const measured = await ClosedLoop.run(lanes, { ...extent, concurrency: level.concurrency, patience })
    return { ...measured, lateness: undefined, held: 0, unsent: 0, goodput: undefined }
  }
  const { perSecond, distribution } = level
  const arrivals =
    distribution === "constant" ? Arrivals.constant(perSecond) : Arrivals.poisson(perSecond, Random.make(seed + round))
  const perLane = target.perConnection
  return OpenLoop.run(lanes, { ...extent, arrivals, clock, maxOutstanding, perLane, deadline, patience })
}
