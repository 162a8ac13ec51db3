/**
 * Closed loop: keeps a fixed number of requests in flight; each reply sends the next request. It measures a server's
 * maximum throughput. OpenLoop.ts measures the latency of independent clients.
 */
import type { Lane } from "./Lane.ts"
import { type Extent, type Measured, Round } from "./Round.ts"

export type { Extent }

/** Options of a closed loop. `seconds` or `requests` ends the round. */
export type ClosedLoopOptions = Extent & {
  /** Number of requests in flight. */
  readonly concurrency: number
  /** Milliseconds without any reply after which the remaining requests are abandoned. Default 30 seconds. */
  readonly patience?: number
}

/** Result of a closed loop. */
export interface ClosedMeasured extends Measured {
  /** Number of problems that were refusals of a server with too much to do. */
  readonly refused: number
}

/** Runs a closed loop. The requests are spread over the lanes; `Target.perConnection` limits those of one lane. */
export const run = async (lanes: ReadonlyArray<Lane>, options: ClosedLoopOptions): Promise<ClosedMeasured> => {
  const { concurrency, patience = 30_000 } = options
  const maxRequests = "requests" in options ? options.requests : Infinity
  let left = maxRequests
  let refused = 0
  const round = new Round(lanes, (lane, startedAt, problem, overload) => {
    const now = performance.now()
    const inTime = now < deadline
    if (problem !== undefined) {
      round.problems.add(problem)
      if (overload !== undefined) refused += 1
    } else if (inTime) round.latencies.record(now - startedAt)
    if (inTime && left > 0) {
      left -= 1
      return lane.send(now)
    }
    ended = Math.min(now, deadline)
    round.outstanding -= 1
    round.stop()
  })
  const started = performance.now()
  const deadline = "seconds" in options ? started + options.seconds * 1000 : Infinity
  let ended = started
  round.outstanding = Math.min(concurrency, maxRequests)
  left -= round.outstanding
  for (let index = 0; index < round.outstanding; index++) lanes[index % lanes.length]?.send(started)
  await round.waitForReplies(patience)
  const milliseconds = (round.outstanding > 0 ? Math.min(performance.now(), deadline) : ended) - started
  return { ...round.measured(milliseconds), refused }
}
