/**
 * The bounded queue in front of the instances, and the rule by which it closes a batch. Pure data: time comes in as a
 * number, nothing waits here.
 *
 * Requests that may share a batch stand in one group, first come first served; the group whose first request is the
 * oldest goes next. An entry leaves in O(1), wherever it stands.
 */
import type { Request } from "./Inference.ts"

export interface Entry {
  readonly request: Request
  /** When it was queued, in the scheduler's nanoseconds. */
  readonly queuedAt: number
}

export interface QueueOptions {
  /** At least 1. */
  readonly maxBatchSize: number
  /** Rows at which a batch is closed at once; empty: only `maxBatchSize`. */
  readonly preferredBatchSizes: ReadonlyArray<number>
  /** How long an entry may wait for others, in nanoseconds. */
  readonly maxQueueDelay: number
  readonly maxQueueSize: number
}

/** Take this many entries of this group now, or ask again at that time or when the queue has changed. */
export type Decision<E extends Entry> =
  | { readonly _tag: "Take"; readonly group: Group<E>; readonly count: number }
  | { readonly _tag: "Wait"; readonly until: number }
  | { readonly _tag: "Empty" }

export interface Group<E extends Entry> {
  readonly key: string
  /** In order of arrival: a Set keeps it, and deletes from the middle in O(1). */
  readonly entries: Set<E>
  rows: number
}

export class RequestQueue<E extends Entry> {
  readonly #options: QueueOptions
  readonly #largestFirst: ReadonlyArray<number>
  readonly #groups = new Map<string, Group<E>>()
  #size = 0

  constructor(options: QueueOptions) {
    this.#options = options
    this.#largestFirst = [...options.preferredBatchSizes].toSorted((a, b) => b - a)
  }

  get size(): number {
    return this.#size
  }

  /** False where the queue is full. */
  offer(entry: E, key: string): boolean {
    if (this.#size >= this.#options.maxQueueSize) return false
    let group = this.#groups.get(key)
    if (group === undefined) this.#groups.set(key, (group = { key, entries: new Set(), rows: 0 }))
    group.entries.add(entry)
    group.rows += entry.request.rows
    this.#size += 1
    return true
  }

  /** False where the entry is not queued (any more). */
  remove(entry: E, key: string): boolean {
    const group = this.#groups.get(key)
    if (group === undefined || !group.entries.delete(entry)) return false
    group.rows -= entry.request.rows
    this.#size -= 1
    if (group.entries.size === 0) this.#groups.delete(key)
    return true
  }

  decide(now: number): Decision<E> {
    const oldest = this.#oldest()
    if (oldest === undefined) return { _tag: "Empty" }
    const ready = this.#closed(oldest.group, now) ? oldest.group : this.#full(oldest.group)
    if (ready === undefined) return { _tag: "Wait", until: oldest.queuedAt + this.#options.maxQueueDelay }
    return { _tag: "Take", group: ready, count: this.#count(ready) }
  }

  /** Takes the first `count` entries of a group out of the queue. */
  take(group: Group<E>, count: number): ReadonlyArray<E> {
    const taken: Array<E> = []
    for (const entry of group.entries) {
      if (taken.length === count) break
      taken.push(entry)
    }
    for (const entry of taken) this.remove(entry, group.key)
    return taken
  }

  /** Takes everything out. */
  clear(): ReadonlyArray<E> {
    return [...this.#groups.values()].flatMap((group) => this.take(group, group.entries.size))
  }

  #oldest(): { readonly group: Group<E>; readonly queuedAt: number } | undefined {
    let oldest: { readonly group: Group<E>; readonly queuedAt: number } | undefined
    for (const group of this.#groups.values()) {
      const [first] = group.entries
      if (first !== undefined && (oldest === undefined || first.queuedAt < oldest.queuedAt)) {
        oldest = { group, queuedAt: first.queuedAt }
      }
    }
    return oldest
  }

  /** Whether nothing is to be gained by waiting: enough rows, or waited long enough. */
  #closed(group: Group<E>, now: number): boolean {
    const { maxBatchSize, maxQueueDelay } = this.#options
    if (maxQueueDelay === 0 || group.rows >= (this.#largestFirst.at(-1) ?? maxBatchSize)) return true
    const [first] = group.entries
    return first !== undefined && now >= first.queuedAt + maxQueueDelay
  }

  /** While the oldest group waits for more, another one may already be complete. */
  #full(waiting: Group<E>): Group<E> | undefined {
    for (const group of this.#groups.values()) {
      if (group !== waiting && group.rows >= (this.#largestFirst.at(-1) ?? this.#options.maxBatchSize)) return group
    }
    return undefined
  }

  /** How many entries go: as many as fit, in order, and no more rows than the largest preferred size they reach. */
  #count(group: Group<E>): number {
    const { maxBatchSize } = this.#options
    const limit = group.rows >= maxBatchSize ? maxBatchSize : this.#largestFirst.find((size) => size <= group.rows)
    let rows = 0
    let count = 0
    for (const { request } of group.entries) {
      if (count > 0 && rows + request.rows > (limit ?? maxBatchSize)) break
      rows += request.rows
      count += 1
    }
    return count
  }
}
