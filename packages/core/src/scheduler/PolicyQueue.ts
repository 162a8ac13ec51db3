/**
 * The queue of a model with priority levels, queue timeouts, preferred batch sizes or preserved order (QueuePolicy.ts).
 * As in Triton, a batch may take requests of several levels, and each level has a separate maximum size. Pure: time is
 * an argument.
 *
 * Requests that may share a batch form lanes (PriorityLanes.ts). The lanes whose first request has the highest level,
 * and the earliest turn of that level, go next, after retried batches. In the order of arrival, all requests form the
 * same lanes, and a request that cannot join the batch before it ends that batch.
 */
import { FairTurns, isAhead } from "./FairTurns.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { Request } from "../request/Request.ts"
import { Expiries } from "./Expiries.ts"
import { PriorityLane, PriorityLanes } from "./PriorityLanes.ts"
import { type Decision, earliest, empty, type Queue, type QueueOptions, type TimedQueue } from "./Queue.ts"
import { levelOf, policyOf, type Queueing, timeoutOf } from "../model/QueuePolicy.ts"
import { Retries } from "./Retries.ts"

export interface PolicyQueueOptions extends QueueOptions {
  readonly preferredBatchSizes: ReadonlyArray<number>
  readonly queueing: Queueing
  /** Receives a request whose queue timeout has passed, after its removal from the queue. */
  readonly reject: (queued: QueuedRequest) => void
}

/** So many levels may be full at once; there may be more of them than memory has room for requests. */
const fullLevels = 64

export class PolicyQueue implements Queue, TimedQueue {
  readonly timed = this
  readonly #options: PolicyQueueOptions
  readonly #preferred: ReadonlySet<number>
  /** Number of rows at which a batch closes immediately. */
  readonly #maxPreferred: number
  readonly #maxRequests: number
  readonly #lanes = new Map<string, PriorityLanes>()
  readonly #sizes = new Map<bigint, number>()
  /** Rows by level, without those whose queue timeout has passed. */
  readonly #rows = new Map<bigint, number>()
  /** Rows by level whose queue timeout has passed. */
  readonly #lateRows = new Map<bigint, number>()
  readonly #expirations = new Expiries<QueuedRequest>()
  readonly #retries = new Retries()
  /** Undefined if responses keep the order of arrival. */
  readonly #turns: FairTurns | undefined
  #size = 0

  constructor(options: PolicyQueueOptions) {
    this.#options = options
    const { preferredBatchSizes, maxBatchSize, queueing } = options
    this.#preferred = new Set(preferredBatchSizes.length === 0 ? [maxBatchSize] : preferredBatchSizes)
    this.#maxPreferred = Math.max(...this.#preferred)
    const policies = [queueing.defaultPolicy, ...queueing.policies.values()]
    this.#maxRequests = fullLevels * Math.max(...policies.map(({ maxQueueSize }) => maxQueueSize))
    this.#turns = queueing.preserveOrdering ? undefined : new FairTurns()
  }

  get size(): number {
    return this.#size
  }

  /** The earliest time at which a queue timeout may pass; infinite for none. */
  get expiresAt(): number {
    return this.#expirations.earliest
  }

  get oldest(): number | undefined {
    if (this.#size === 0) return undefined
    let oldest = earliest(this.#retries.all(), Infinity)
    for (const lanes of this.#lanes.values()) oldest = earliest(lanes, oldest)
    return oldest
  }

  /** At most: with queue timeouts, requests that are ahead may leave before their turn, or go to the end. */
  rowsAhead({ parameters }: Request): number {
    const ownLevel = levelOf(this.#options.queueing, parameters)
    let rows = 0
    for (const [level, ofLevel] of this.#rows) if (level <= ownLevel) rows += ofLevel
    for (const [level, ofLevel] of this.#lateRows) if (level < ownLevel) rows += ofLevel
    for (const { request } of this.#retries.all()) rows += request.rows
    return rows
  }

  /** Requests of its level that are ahead leave with their queue timeout, and it leaves itself. */
  longestWait({ parameters }: Request): number {
    const policy = policyOf(this.#options.queueing, levelOf(this.#options.queueing, parameters))
    return policy.timeoutAction === "REJECT" ? timeoutOf(policy, parameters) : Infinity
  }

  *front(): Iterable<QueuedRequest> {
    if (this.#retries.next().length === 0) yield* this.#first() ?? []
  }

  offer(queued: QueuedRequest, key: string): boolean {
    const { queueing } = this.#options
    const { parameters } = queued.request
    const level = levelOf(queueing, parameters)
    const policy = policyOf(queueing, level)
    const size = this.#sizes.get(level) ?? 0
    if (size >= policy.maxQueueSize || this.#size >= this.#maxRequests) return false
    this.#size += 1
    this.#sizes.set(level, size + 1)
    add(this.#rows, level, queued.request.rows)
    const timeout = timeoutOf(policy, parameters)
    if (timeout !== Infinity) queued.timeout = this.#expirations.add(queued, queued.queuedAt + timeout)
    if (this.#options.groupOrder === "arrival") {
      queued.key = key
      key = ""
    }
    this.#turns?.enter(queued)
    let lanes = this.#lanes.get(key)
    if (lanes === undefined) this.#lanes.set(key, (lanes = new PriorityLanes(key)))
    lanes.push(queued, level, false)
    return true
  }

  retry(requests: ReadonlyArray<QueuedRequest>): void {
    this.#retries.add(requests)
    this.#size += requests.length
  }

  remove(queued: QueuedRequest): void {
    const lane = queued.group
    if (lane === undefined) return
    this.#size -= 1
    if (!(lane instanceof PriorityLane)) return this.#retries.remove(lane, queued)
    this.#turns?.leave(queued)
    const { level, lanes } = lane
    const size = this.#sizes.get(level) ?? 0
    if (size > 1) this.#sizes.set(level, size - 1)
    else this.#sizes.delete(level)
    add(lane.isLate ? this.#lateRows : this.#rows, level, -queued.request.rows)
    this.#expirations.delete(queued.timeout)
    lanes.remove(lane, queued)
    if (lanes.first === undefined) this.#lanes.delete(lanes.key)
  }

  /** Rejects the requests that have exceeded their queue timeout, or moves them behind the others of their level. */
  expire(now: number): void {
    for (const queued of this.#expirations.take(now)) {
      const lane = queued.group
      if (!(lane instanceof PriorityLane)) continue
      if (policyOf(this.#options.queueing, lane.level).timeoutAction === "DELAY") {
        lane.lanes.remove(lane, queued)
        lane.lanes.push(queued, lane.level, true)
        add(this.#rows, lane.level, -queued.request.rows)
        add(this.#lateRows, lane.level, queued.request.rows)
      } else {
        this.remove(queued)
        this.#options.reject(queued)
      }
    }
  }

  decide(now: number): Decision {
    const next = this.#next(now)
    if (next === undefined) return empty
    if (typeof next === "number") return { _tag: "Wait", until: next }
    this.#turns?.taken(next)
    return this.#take(next)
  }

  isReady(now: number): boolean {
    return typeof this.#next(now) === "object"
  }

  clear(): Array<QueuedRequest> {
    const all = [...this.#retries.all(), ...[...this.#lanes.values()].flatMap((lanes) => [...lanes])]
    for (const queued of all) this.remove(queued)
    return all
  }

  #take(requests: ReadonlyArray<QueuedRequest>): Decision {
    for (const queued of requests) this.remove(queued)
    return { _tag: "Take", requests }
  }

  /** The requests that go now, or the time until which all wait; undefined for none. */
  #next(now: number): ReadonlyArray<QueuedRequest> | number | undefined {
    const retried = this.#retries.next()
    if (retried.length > 0) return retried
    this.expire(now)
    const first = this.#first()
    if (first === undefined) return undefined
    let until = Infinity
    // While those that go first wait for more, others may already be complete.
    for (const lanes of new Set([first, ...this.#lanes.values()])) {
      const closed = this.#close(lanes, now)
      if (typeof closed !== "number") return closed
      if (closed < until) until = closed
    }
    return until
  }

  #first(): PriorityLanes | undefined {
    let first: PriorityLane | undefined
    for (const { first: lane } of this.#lanes.values()) {
      if (lane === undefined) continue
      if (first === undefined || lane.isAhead(first.level, first.isLate)) first = lane
      else if (!first.isAhead(lane.level, lane.isLate) && isAhead(lane.first, first.first)) first = lane
    }
    return first?.lanes
  }

  /**
   * The requests that go now, or the time until which they wait. Triton's rule: the largest preferred size that their
   * rows add up to, unless one of them has waited for the whole delay, which takes as many as fit.
   */
  #close(lanes: PriorityLanes, now: number): ReadonlyArray<QueuedRequest> | number {
    const { maxBatchSize, maxQueueDelay } = this.#options
    const fitting: Array<QueuedRequest> = []
    let rows = 0
    let preferred = 0
    let oldest = Infinity
    let isFull = false
    const key = lanes.first?.first.key
    for (const queued of lanes) {
      const more = rows + queued.request.rows
      // This request exceeds the largest preferred size, and none was reached: the batch may end before it.
      if (fitting.length > 0 && preferred === 0 && more > this.#maxPreferred) preferred = fitting.length
      if (fitting.length > 0 && (more > maxBatchSize || queued.key !== key)) {
        isFull = true
        break
      }
      rows = more
      fitting.push(queued)
      if (this.#preferred.has(rows)) preferred = fitting.length
      if (queued.queuedAt < oldest) oldest = queued.queuedAt
    }
    const until = oldest + maxQueueDelay
    const isLate = maxQueueDelay > 0 && now >= until
    if (preferred > 0 && !isLate) return fitting.slice(0, preferred)
    return isFull || rows >= this.#maxPreferred || now >= until ? fitting : until
  }
}

/** Levels without rows have no entry: there may be more levels than memory has room for. */
const add = (rows: Map<bigint, number>, level: bigint, more: number): void => {
  const sum = (rows.get(level) ?? 0) + more
  if (sum > 0) rows.set(level, sum)
  else rows.delete(level)
}
