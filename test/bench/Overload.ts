/**
 * Answers in time of a server under more load than it can carry. The capacity is the highest rate of answers in time
 * that an open loop of rising rates finds: a closed loop would not be comparable, since its callers wait for each other
 * and fill batches differently. Then multiples of that are offered, as independent callers with a deadline. The load
 * shares no core with the server where Cores.ts can pin them.
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
  /** Connections of a target with many requests on each; a target with one request on each opens what it needs. */
  readonly connections: number
}

/** Requests of one load. Rates are per second, times in milliseconds. */
export interface Overload {
  readonly offered: number
  /** Requests that were sent: fewer than offered if the load itself was too slow. */
  readonly sent: number
  readonly inTime: number
  readonly refused: number
  readonly late: number
  readonly answeredP50: number
  readonly answeredP99: number
  /** Of the requests that were not refused; a request that was given up counts with its deadline. */
  readonly acceptedP99: number
  readonly refusedP50: number
  readonly refusedP99: number
  /** Delay of sending, by the load. It is part of the other times. */
  readonly latenessP99: number
  /** CPU time of the load's thread, as a share of the time. Near 1, the load was the limit. */
  readonly loadCpu: number
  readonly reconnections: number
  readonly problems: ReadonlyMap<string, number>
}

/** More than these in flight are held back. */
const maxOutstanding = 8192

/** Whether the figures are those of the load rather than of the server. */
export const isSaturated = ({ offered, sent, loadCpu, latenessP99 }: Overload): boolean =>
  loadCpu > 0.9 || latenessP99 > 5 || sent < 0.97 * offered

/**
 * Answers per second of as many callers as keep the server busy: the start of the search, and a warm-up. A server may
 * refuse some of them.
 */
export const closedLoop = async (
  { target, connections }: Pick<OverloadOptions, "target" | "connections">,
  callers: number,
  { warmUp, ...extent }: { readonly warmUp: number } & ClosedLoop.Extent = { warmUp: 1.5, seconds: 1 },
): Promise<number> => {
  const lanes = await Lane.openAll(target, target.perConnection === 1 ? callers : connections)
  try {
    if (warmUp > 0) await ClosedLoop.run(lanes, { concurrency: callers, seconds: warmUp })
    const { perSecond, problems, refused } = await ClosedLoop.run(lanes, { concurrency: callers, ...extent })
    if (problems.count > refused || perSecond === 0)
      throw new Error(`the closed loop failed: ${[...problems.messages.keys()].join("; ")}`)
    return perSecond
  } finally {
    for (const lane of lanes) lane.close()
  }
}

/** The highest rate of answers in time, and the rate that was offered for it. */
export interface Capacity {
  readonly inTime: number
  readonly offered: number
}

/** Between two rates of the search. */
const step = 1.12

/** Steps without a higher rate of answers, after which the search ends. */
const enough = 2

/**
 * Searches the capacity from a rate upwards, with callers that tell their deadline. `from`: the rate at which an
 * earlier search found it.
 */
export const capacity = async (
  options: OverloadOptions,
  milliseconds: number,
  callers: number,
  from?: Capacity,
): Promise<Capacity> => {
  let rate = from === undefined ? 0.6 * (await closedLoop(options, callers)) : from.offered / step
  let best: Capacity = { inTime: 0, offered: rate }
  for (let worse = 0; worse < enough; rate *= step) {
    const { inTime } = await offer(options, rate, { milliseconds, isTold: true }, { seconds: 1, settle: 0.3 })
    if (inTime > best.inTime) {
      best = { inTime, offered: rate }
      worse = 0
    } else worse += 1
  }
  return best
}

/** Offers so many requests per second, after a time of the same that does not count. */
export const offer = async (
  { target, clock, connections }: OverloadOptions,
  perSecond: number,
  deadline: OpenLoop.Deadline,
  { seconds, settle }: { readonly seconds: number; readonly settle: number },
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
    await round(settle, 1)
    const measured = await round(seconds, 2)
    const { requests, goodput, seconds: taken, latencies, lateness, reconnections, problems, usage } = measured
    if (goodput === undefined) throw new Error("The load has a deadline. This is a bug of the benchmark.")
    const { accepted, refused, late } = goodput
    return {
      offered: perSecond,
      sent: (accepted.count + refused.count) / taken,
      inTime: requests / taken,
      refused: refused.count / taken,
      late: late / taken,
      answeredP50: latencies.percentile(50),
      answeredP99: latencies.percentile(99),
      acceptedP99: accepted.percentile(99),
      refusedP50: refused.percentile(50),
      refusedP99: refused.percentile(99),
      latenessP99: lateness.percentile(99),
      loadCpu: usage.cpu,
      reconnections,
      problems: problems.messages,
    }
  } finally {
    for (const lane of lanes) lane.close()
  }
}
