/**
 * Answers in time of a server under more load than it can carry: measures its capacity by a closed loop, and then
 * offers multiples of that as independent callers with a deadline. The load shares no core with the server where
 * Cores.ts can pin them.
 */
import * as ClosedLoop from "@nereid/bench/internal/load/ClosedLoop"
import * as Lane from "@nereid/bench/internal/load/Lane"
import type * as Metronome from "@nereid/bench/internal/load/Metronome"
import * as OpenLoop from "@nereid/bench/internal/load/OpenLoop"
import type { Target } from "@nereid/bench/internal/target/Load"
import * as Arrivals from "@nereid/core/internal/synthetic/Arrivals"
import * as Random from "@nereid/core/internal/synthetic/Random"

export interface OverloadOptions {
  readonly target: Target
  readonly clock: ReturnType<typeof Metronome.start>
  /** Duration of each measurement. */
  readonly seconds: number
  /** Connections of a target with many requests on each; a target with one request on each opens what it needs. */
  readonly connections: number
  /** Callers of the closed loop. */
  readonly callers: number
}

/** Requests of one load. Rates are per second, times in milliseconds. */
export interface Overload {
  /** Requests that were sent: fewer than offered if the load itself was too slow. */
  readonly sent: number
  readonly inTime: number
  readonly refused: number
  readonly late: number
  /** Of the requests that were not refused; a request that was given up counts with its deadline. */
  readonly acceptedP99: number
  readonly refusedP50: number
  readonly refusedP99: number
  /** Delay of sending, by the load. It is part of the other times. */
  readonly latenessP99: number
  readonly reconnections: number
  readonly problems: ReadonlyMap<string, number>
}

/** More than these in flight are held back. */
const maxOutstanding = 8192

/** Answers per second of as many callers as keep the server busy. */
export const capacity = async ({ target, seconds, connections, callers }: OverloadOptions): Promise<number> => {
  const lanes = await Lane.openAll(target, target.perConnection === 1 ? callers : connections)
  try {
    await ClosedLoop.run(lanes, { concurrency: callers, seconds: seconds / 2 })
    const { perSecond, problems } = await ClosedLoop.run(lanes, { concurrency: callers, seconds })
    if (problems.count > 0) throw new Error(`the closed loop failed: ${[...problems.messages.keys()].join("; ")}`)
    return perSecond
  } finally {
    for (const lane of lanes) lane.close()
  }
}

/** Offers so many requests per second, after a second of the same that does not count. */
export const offer = async (
  { target, clock, seconds, connections }: OverloadOptions,
  perSecond: number,
  deadline: OpenLoop.Deadline,
): Promise<Overload> => {
  const lanes =
    target.perConnection === 1
      ? Array.from({ length: maxOutstanding }, () => new Lane.Lane(target))
      : await Lane.openAll(target, connections)
  const round = (duration: number, seed: number) =>
    OpenLoop.run(lanes, {
      seconds: duration,
      arrivals: Arrivals.poisson(perSecond, Random.make(seed)),
      clock,
      maxOutstanding,
      perLane: target.perConnection,
      deadline,
      patience: 5000,
    })
  try {
    await round(Math.min(1, seconds), 1)
    const { requests, goodput, seconds: taken, lateness, reconnections, problems } = await round(seconds, 2)
    if (goodput === undefined) throw new Error("The load has a deadline. This is a bug of the benchmark.")
    const { accepted, refused, late } = goodput
    return {
      sent: (accepted.count + refused.count) / taken,
      inTime: requests / taken,
      refused: refused.count / taken,
      late: late / taken,
      acceptedP99: accepted.percentile(99),
      refusedP50: refused.percentile(50),
      refusedP99: refused.percentile(99),
      latenessP99: lateness.percentile(99),
      reconnections,
      problems: problems.messages,
    }
  } finally {
    for (const lane of lanes) lane.close()
  }
}
