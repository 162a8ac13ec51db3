/**
 * Entries that may share a batch, in the order in which they go: by level, those whose time is over behind the others of
 * theirs, and first come first served in each of these lanes. Pure data; which lane an entry belongs to is PolicyQueue.ts's.
 *
 *   level 1        a ─ b ─ c
 *   level 1, late  d
 *   level 3        e ─ f
 */
import type { QueuedRequest, RequestGroup as Group } from "./QueuedRequest.ts"
import * as RequestGroup from "./RequestGroup.ts"

/** Never empty while it is among others. */
export class Lane implements Group {
  readonly lanes: Lanes
  readonly level: bigint
  readonly isLate: boolean
  readonly isClosed = false
  first: QueuedRequest
  last: QueuedRequest
  rows: number

  constructor(lanes: Lanes, level: bigint, isLate: boolean, entry: QueuedRequest) {
    this.lanes = lanes
    this.level = level
    this.isLate = isLate
    this.first = this.last = entry
    this.rows = entry.request.rows
    entry.group = this
  }

  get key(): string {
    return this.lanes.key
  }

  /** Whether it goes ahead of another one, which may be that of others. */
  isAhead(level: bigint, isLate: boolean): boolean {
    return this.level === level ? !this.isLate && isLate : this.level < level
  }
}

export class Lanes {
  readonly key: string
  readonly #lanes: Array<Lane> = []

  constructor(key: string) {
    this.key = key
  }

  /** The one that goes first; undefined where there are no entries. */
  get first(): Lane | undefined {
    return this.#lanes[0]
  }

  push(entry: QueuedRequest, level: bigint, isLate: boolean): void {
    let index = this.#lanes.findIndex((lane) => !lane.isAhead(level, isLate))
    if (index < 0) index = this.#lanes.length
    const lane = this.#lanes[index]
    if (lane?.level === level && lane.isLate === isLate) RequestGroup.append(lane, entry)
    else this.#lanes.splice(index, 0, new Lane(this, level, isLate, entry))
  }

  /** Of one of its lanes. */
  remove(lane: Lane, entry: QueuedRequest): void {
    if (RequestGroup.remove(lane, entry)) this.#lanes.splice(this.#lanes.indexOf(lane), 1)
  }

  /** In the order in which they go. */
  *[Symbol.iterator](): Iterator<QueuedRequest> {
    for (const { first } of this.#lanes) {
      for (let entry: QueuedRequest | undefined = first; entry !== undefined; entry = entry.next) yield entry
    }
  }
}
