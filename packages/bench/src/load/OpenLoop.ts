/**
 * Open loop: sends requests at their scheduled times, whether or not earlier ones have replies, like independent
 * clients. Latency counts from the scheduled time, so a pause of the server counts for all requests scheduled during
 * it.
 */
import type { Arrivals } from "@nereid/core/internal/synthetic/Arrivals"
import { CallDeadline, type Overload } from "../target/Load.ts"
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
  /** Undefined for callers that wait for any time. */
  readonly deadline?: Deadline | undefined
  /** Milliseconds without any reply after which the remaining requests are abandoned. Default 30 seconds. */
  readonly patience?: number
}

/** When callers give up, and cancel their requests. */
export interface Deadline {
  /** Milliseconds after the scheduled time of a request. */
  readonly milliseconds: number
  /** Whether requests tell the server how much time is left. */
  readonly isTold: boolean
}

/** Requests that had a deadline and no valid reply in time. */
export interface Goodput {
  /** Of accepted requests. One without a reply counts with the time at which its caller gave up. */
  readonly accepted: Latencies
  /** Time until the refusal, of requests that the server refused. */
  readonly refused: Latencies
  /** Number of requests whose caller gave up. */
  readonly late: number
}

/** Result of an open loop. */
export interface OpenMeasured extends Measured {
  /** Delays of requests that were sent late by the load itself. They are part of the latencies. */
  readonly lateness: Latencies
  /** Number of requests that waited because `maxOutstanding` was reached. */
  readonly held: number
  /** Number of requests that were scheduled in the round but not sent before its end. */
  readonly unsent: number
  /** Undefined without a deadline. */
  readonly goodput: Goodput | undefined
}

/** Runs an open loop. Never rejects: failed requests are in `problems` of the result. */
export const run = async (lanes: ReadonlyArray<Lane>, options: OpenLoopOptions): Promise<OpenMeasured> => {
  const { arrivals, clock, perLane, deadline: limit, patience = 30_000 } = options
  const maxOutstanding = Math.min(options.maxOutstanding, perLane * lanes.length)
  const free = new FreeLanes(lanes, perLane)
  const lateness = new Latencies()
  let left = "requests" in options ? options.requests : Infinity
  let held = 0
  let unsent = 0
  /** Whether the next request waits for others to end. */
  let holding = false

  const goodput = limit && new Waiting(limit)
  const round = new Round(lanes, (lane, startedAt, problem, overload) => {
    ended = clock.now()
    const isInTime = goodput?.replied(startedAt, ended, overload) ?? true
    if (problem === undefined) {
      if (isInTime) round.latencies.record(ended - startedAt)
    } else if (goodput === undefined || overload === undefined) round.problems.add(problem)
    leave(lane)
    if (next <= ended) send()
    else if (isOver()) round.stop()
  })
  const leave = (lane: Lane) => {
    free.add(lane)
    round.outstanding -= 1
  }
  const isOver = () => left === 0 || next >= deadline

  const giveUp = (now: number) => {
    if (goodput === undefined || now < goodput.nextAt) return
    goodput.giveUp(now, leave)
    if (isOver()) round.stop()
  }

  const send = () => {
    const now = clock.now()
    giveUp(now)
    while (next <= now && !isOver()) {
      if (now >= deadline) {
        unsent += 1
      } else {
        const lane = round.outstanding < maxOutstanding ? free.take() : undefined
        if (lane === undefined) {
          holding = true
          if (goodput !== undefined) clock.wake(goodput.nextAt, send)
          return
        }
        if (holding) held += 1
        else lateness.record(now - next)
        left -= 1
        round.outstanding += 1
        lane.send(next, goodput?.begin(next, lane))
      }
      next += arrivals.next()
    }
    holding = false
    if (isOver()) round.stop()
    const wakeAt = Math.min(isOver() ? Infinity : next, goodput?.nextAt ?? Infinity)
    if (wakeAt < Infinity) clock.wake(wakeAt, send)
  }

  const started = clock.now()
  const deadline = "seconds" in options ? started + options.seconds * 1000 : Infinity
  let next = started + arrivals.next()
  let ended = started
  clock.wake(next, send)
  await round.waitForReplies(patience)
  const end = Math.max(ended, deadline === Infinity ? ended : deadline)
  return { ...round.measured(end - started), lateness, held, unsent, goodput }
}

/** Requests in flight with a deadline, in the order of their scheduled times. */
class Waiting implements Goodput {
  readonly accepted = new Latencies()
  readonly refused = new Latencies()
  late = 0
  readonly #limit: Deadline
  readonly #requests = new Map<number, { readonly lane: Lane; readonly deadline: CallDeadline }>()

  constructor(limit: Deadline) {
    this.#limit = limit
  }

  /** The time at which the next caller gives up; infinite without requests. */
  get nextAt(): number {
    const { value: first } = this.#requests.keys().next()
    return first === undefined ? Infinity : first + this.#limit.milliseconds
  }

  begin(startedAt: number, lane: Lane): CallDeadline {
    const deadline = new CallDeadline(startedAt + this.#limit.milliseconds, this.#limit.isTold)
    this.#requests.set(startedAt, { lane, deadline })
    return deadline
  }

  /** Returns whether the reply is in time. */
  replied(startedAt: number, now: number, overload: Overload | undefined): boolean {
    this.#requests.delete(startedAt)
    const latency = now - startedAt
    const { milliseconds } = this.#limit
    if (overload === "refused") this.refused.record(latency)
    else this.accepted.record(overload === "late" ? Math.max(latency, milliseconds) : latency)
    const isLate = overload === "late" || latency > milliseconds
    if (isLate && overload !== "refused") this.late += 1
    return !isLate
  }

  /** Cancels the requests whose deadline has passed, and hands their lanes back. */
  giveUp(now: number, leave: (lane: Lane) => void): void {
    for (const [startedAt, { lane, deadline }] of this.#requests) {
      if (deadline.at > now) return
      this.#requests.delete(startedAt)
      this.late += 1
      this.accepted.record(now - startedAt)
      deadline.cancel()
      leave(lane)
    }
  }
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
