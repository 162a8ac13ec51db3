/**
 * The queue of a model that declares more than a size and a delay: priority levels, times in the queue, preferred batch
 * sizes. As in Triton, a batch takes what goes first, whatever its levels are, and each level has a size of its own. Pure
 * data: time comes in as a number.
 *
 * Requests that may share a batch stand in lanes (Lanes.ts); those whose first entry has the highest level, and is the
 * oldest of that, go next, behind batches that are to be executed again.
 */
import type { QueuedRequest } from "./QueuedRequest.ts"
import { Expiries } from "./Expiries.ts"
import { Lane, Lanes } from "./Lanes.ts"
import { type Decision, empty, type Queue, type QueueOptions } from "./Queue.ts"
import { levelOf, policyOf, type Queueing, timeoutOf } from "../model/QueuePolicy.ts"
import { Retries } from "./Retries.ts"

export interface PolicyQueueOptions extends QueueOptions {
  readonly preferredBatchSizes: ReadonlyArray<number>
  readonly queueing: Queueing
  /** Is given an entry whose time in the queue is over, once it is out of it. */
  readonly reject: (entry: QueuedRequest) => void
}

/** So many levels may be full at once; there may be more of them than memory has room for requests. */
const fullLevels = 64

export class PolicyQueue implements Queue {
  readonly #options: PolicyQueueOptions
  readonly #preferred: ReadonlySet<number>
  /** A batch of so many rows is not waited for any longer. */
  readonly #mostPreferred: number
  readonly #mostEntries: number
  readonly #all = new Map<string, Lanes>()
  readonly #sizes = new Map<bigint, number>()
  readonly #expiries = new Expiries<QueuedRequest>()
  readonly #retries = new Retries()
  #size = 0

  constructor(options: PolicyQueueOptions) {
    this.#options = options
    const { preferredBatchSizes, maxBatchSize, queueing } = options
    this.#preferred = new Set(preferredBatchSizes.length === 0 ? [maxBatchSize] : preferredBatchSizes)
    this.#mostPreferred = Math.max(...this.#preferred)
    const sizes = [queueing.defaultPolicy, ...queueing.policies.values()].map(({ maxQueueSize }) => maxQueueSize)
    this.#mostEntries = fullLevels * Math.max(...sizes)
  }

  get size(): number {
    return this.#size
  }

  /** The time at which an entry's time may be over; infinite for none. */
  get expiresAt(): number {
    return this.#expiries.earliest
  }

  offer(entry: QueuedRequest, key: string): boolean {
    const { queueing } = this.#options
    const { parameters } = entry.request
    const level = levelOf(queueing, parameters)
    const policy = policyOf(queueing, level)
    const size = this.#sizes.get(level) ?? 0
    if (size >= policy.maxQueueSize || this.#size >= this.#mostEntries) return false
    this.#size += 1
    this.#sizes.set(level, size + 1)
    const timeout = timeoutOf(policy, parameters)
    if (timeout !== Infinity) this.#expiries.add(entry, entry.queuedAt + timeout)
    let lanes = this.#all.get(key)
    if (lanes === undefined) this.#all.set(key, (lanes = new Lanes(key)))
    lanes.push(entry, level, false)
    return true
  }

  retry(entries: ReadonlyArray<QueuedRequest>): void {
    this.#retries.add(entries)
    this.#size += entries.length
  }

  remove(entry: QueuedRequest): void {
    const lane = entry.group
    if (lane === undefined) return
    this.#size -= 1
    if (!(lane instanceof Lane)) return this.#retries.remove(lane, entry)
    const { level, lanes } = lane
    const size = this.#sizes.get(level) ?? 0
    if (size > 1) this.#sizes.set(level, size - 1)
    else this.#sizes.delete(level)
    this.#expiries.delete(entry)
    lanes.remove(lane, entry)
    if (lanes.first === undefined) this.#all.delete(lanes.key)
  }

  /** Those whose time is over are rejected, or go behind the others of their level. */
  expire(now: number): void {
    for (const entry of this.#expiries.take(now)) {
      const lane = entry.group
      if (!(lane instanceof Lane)) continue
      if (policyOf(this.#options.queueing, lane.level).timeoutAction === "DELAY") {
        lane.lanes.remove(lane, entry)
        lane.lanes.push(entry, lane.level, true)
      } else {
        this.remove(entry)
        this.#options.reject(entry)
      }
    }
  }

  decide(now: number): Decision {
    const retried = this.#retries.next()
    if (retried.length > 0) return this.#take(retried)
    this.expire(now)
    const first = this.#first()
    if (first === undefined) return empty
    let until = Infinity
    // While those that go first wait for more, others may already be complete.
    for (const lanes of new Set([first, ...this.#all.values()])) {
      const closed = this.#close(lanes, now)
      if (typeof closed !== "number") return this.#take(closed)
      if (closed < until) until = closed
    }
    return { _tag: "Wait", until }
  }

  clear(): Array<QueuedRequest> {
    const all = [...this.#retries.all(), ...[...this.#all.values()].flatMap((lanes) => [...lanes])]
    for (const entry of all) this.remove(entry)
    return all
  }

  #take(entries: ReadonlyArray<QueuedRequest>): Decision {
    for (const entry of entries) this.remove(entry)
    return { _tag: "Take", entries }
  }

  #first(): Lanes | undefined {
    let first: Lane | undefined
    for (const { first: lane } of this.#all.values()) {
      if (lane === undefined) continue
      if (first === undefined || lane.isAhead(first.level, first.isLate)) first = lane
      else if (!first.isAhead(lane.level, lane.isLate) && lane.first.queuedAt < first.first.queuedAt) first = lane
    }
    return first?.lanes
  }

  /**
   * The entries that go now, or until when they wait. Triton's rule: the largest preferred size that their rows add up to,
   * unless one of them has waited for the whole delay, which takes as many as fit.
   */
  #close(lanes: Lanes, now: number): ReadonlyArray<QueuedRequest> | number {
    const { maxBatchSize, maxQueueDelay } = this.#options
    const fitting: Array<QueuedRequest> = []
    let rows = 0
    let preferred = 0
    let oldest = Infinity
    let isFull = false
    for (const entry of lanes) {
      const more = rows + entry.request.rows
      // What there is comes no closer to a preferred size.
      if (fitting.length > 0 && preferred === 0 && more > this.#mostPreferred) preferred = fitting.length
      if (fitting.length > 0 && more > maxBatchSize) {
        isFull = true
        break
      }
      rows = more
      fitting.push(entry)
      if (this.#preferred.has(rows)) preferred = fitting.length
      if (entry.queuedAt < oldest) oldest = entry.queuedAt
    }
    const until = oldest + maxQueueDelay
    const isLate = maxQueueDelay > 0 && now >= until
    if (preferred > 0 && !isLate) return fitting.slice(0, preferred)
    return isFull || rows >= this.#mostPreferred || now >= until ? fitting : until
  }
}
