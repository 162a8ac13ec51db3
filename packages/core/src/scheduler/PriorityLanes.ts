/**
 * Requests that may share a batch, in the order of execution: by priority level, those with an expired queue timeout
 * behind the others of their level, and in the order of their turns (FairTurns.ts) in each of these lanes. Pure data;
 * PolicyQueue.ts chooses the lane.
 *
 *   level 1        a ─ b ─ c
 *   level 1, late  d
 *   level 3        e ─ f
 */
import type { QueuedRequest, RequestGroup as Group } from "./QueuedRequest.ts"
import * as RequestGroup from "./RequestGroup.ts"

/** One level, in time or late. Never empty while it belongs to PriorityLanes. */
export class PriorityLane implements Group {
  readonly lanes: PriorityLanes
  readonly level: bigint
  readonly isLate: boolean
  readonly isClosed = false
  first: QueuedRequest
  last: QueuedRequest
  rows: number

  constructor(lanes: PriorityLanes, level: bigint, isLate: boolean, queued: QueuedRequest) {
    this.lanes = lanes
    this.level = level
    this.isLate = isLate
    this.first = this.last = queued
    this.rows = queued.request.rows
    queued.group = this
  }

  get key(): string {
    return this.lanes.key
  }

  /** Whether this lane goes ahead of a lane with this level and lateness. */
  isAhead(level: bigint, isLate: boolean): boolean {
    return this.level === level ? !this.isLate && isLate : this.level < level
  }
}

export class PriorityLanes {
  readonly key: string
  readonly #lanes: Array<PriorityLane> = []

  constructor(key: string) {
    this.key = key
  }

  /** The lane that goes first; undefined without requests. */
  get first(): PriorityLane | undefined {
    return this.#lanes[0]
  }

  push(queued: QueuedRequest, level: bigint, isLate: boolean): void {
    let index = this.#lanes.findIndex((lane) => !lane.isAhead(level, isLate))
    if (index < 0) index = this.#lanes.length
    const lane = this.#lanes[index]
    if (lane?.level === level && lane.isLate === isLate)
      (isLate ? RequestGroup.append : RequestGroup.insert)(lane, queued)
    else this.#lanes.splice(index, 0, new PriorityLane(this, level, isLate, queued))
  }

  /** Removes a request of one of these lanes. */
  remove(lane: PriorityLane, queued: QueuedRequest): void {
    if (RequestGroup.remove(lane, queued)) this.#lanes.splice(this.#lanes.indexOf(lane), 1)
  }

  /** In the order in which they go. */
  *[Symbol.iterator](): Iterator<QueuedRequest> {
    for (const { first } of this.#lanes) {
      for (let queued: QueuedRequest | undefined = first; queued !== undefined; queued = queued.next) yield queued
    }
  }
}
