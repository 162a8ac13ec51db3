/**
 * Open loop: sends requests at their scheduled times, whether or not earlier ones have replies, like independent
 * clients. Latency counts from the scheduled time, so a pause of the server counts for all requests scheduled during
 * it.
 */
import type { Arrivals } from "@nereid/core/internal/synthetic/Arrivals"
import type { Clock } from "./Clock.ts"
import type { Lane } from "./Lane.ts"
import { Latencies } from "./Latencies.ts"
import { type Extent, type Measured, Round } from "./Round.ts"

/** Options of an open loop. `arrivals` schedules the requests; `seconds` or `requests` ends the round. */
export type OpenLoopOptions = Extent & {
  readonly arrivals: Arrivals
  readonly clock: Clock
  /** Maximum requests in flight. Further requests wait, and their latency counts from the scheduled time. */
  readonly maxOutstanding: number
  /** Maximum requests in flight on one lane: `Target.perConnection`. */
  readonly perLane: number
  /** Milliseconds without any reply after which the remaining requests are abandoned. Default 30 seconds. */
  readonly patience?: number
}

/** Result of an open loop. */
export interface OpenMeasured extends Measured {
  /** Delays of requests that were sent late by the load itself. They are part of the latencies. */
  readonly lateness: Latencies
  /** Number of requests that waited because `maxOutstanding` was reached. */
  readonly held: number
  /** Number of requests that were scheduled in the round but not sent before its end. */
  readonly unsent: number
}

/** Runs an open loop. Never rejects: failed requests are in `problems` of the result. */
export const run = async (lanes: ReadonlyArray<Lane>, options: OpenLoopOptions): Promise<OpenMeasured> => {
  const { arrivals, clock, perLane, patience = 30_000 } = options
  const maxOutstanding = Math.min(options.maxOutstanding, perLane * lanes.length)
  const free = new FreeLanes(lanes, perLane)
  const lateness = new Latencies()
  let left = "requests" in options ? options.requests : Infinity
  let held = 0
  let unsent = 0
  /** Whether the next request waits for others to end. */
  let holding = false

  const round = new Round(lanes, (lane, startedAt, problem) => {
    ended = clock.now()
    if (problem !== undefined) round.problems.add(problem)
    else round.latencies.record(ended - startedAt)
    free.add(lane)
    round.outstanding -= 1
    if (next <= ended) send()
    else if (isOver()) round.stop()
  })
  const isOver = () => left === 0 || next >= deadline

  const send = () => {
    const now = clock.now()
    while (next <= now && !isOver()) {
      if (now >= deadline) {
        unsent += 1
      } else {
        const lane = round.outstanding < maxOutstanding ? free.take() : undefined
        if (lane === undefined) {
          holding = true
          return
        }
        if (holding) held += 1
        else lateness.record(now - next)
        left -= 1
        round.outstanding += 1
        lane.send(next)
      }
      next += arrivals.next()
    }
    holding = false
    if (isOver()) round.stop()
    else clock.wake(next, send)
  }

  const started = clock.now()
  const deadline = "seconds" in options ? started + options.seconds * 1000 : Infinity
  let next = started + arrivals.next()
  let ended = started
  clock.wake(next, send)
  await round.waitForReplies(patience)
  const end = Math.max(ended, deadline === Infinity ? ended : deadline)
  return { ...round.measured(end - started), lateness, held, unsent }
}

/**
 * Lanes that accept another request. If a lane takes a single request, the lane that became free last goes first, so
 * that few connections are used. Otherwise the lanes take turns.
 */
class FreeLanes {
  readonly #lanes: Array<Lane>
  readonly #single: boolean
  #next = 0

  constructor(lanes: ReadonlyArray<Lane>, perLane: number) {
    this.#lanes = lanes.toReversed()
    this.#single = perLane === 1
  }

  take(): Lane | undefined {
    if (this.#single) return this.#lanes.pop()
    this.#next = (this.#next + 1) % this.#lanes.length
    return this.#lanes[this.#next]
  }

  add(lane: Lane): void {
    if (this.#single) this.#lanes.push(lane)
  }
}
