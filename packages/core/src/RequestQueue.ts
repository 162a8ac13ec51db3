/**
 * The bounded queue in front of the instances, and the rule by which it closes a batch. Pure data: time comes in as a
 * number, nothing waits here.
 *
 * Requests that may share a batch stand in one group, first come first served; the group whose first request is the
 * oldest goes next, behind batches that are to be executed again. An entry leaves in O(1), wherever it stands.
 */
import type { Entry } from "./Entry.ts"

export interface QueueOptions {
  /** At least 1. */
  readonly maxBatchSize: number
  /** Rows at which a batch is closed at once; empty: only `maxBatchSize`. */
  readonly preferredBatchSizes: ReadonlyArray<number>
  /** How long an entry may wait for others, in nanoseconds. */
  readonly maxQueueDelay: number
  readonly maxQueueSize: number
}

/** This group goes now; or wait until that time, or until the queue has changed. */
export type Decision =
  | { readonly _tag: "Take"; readonly group: Group }
  | { readonly _tag: "Wait"; readonly until: number }
  | { readonly _tag: "Empty" }

/** A list through its entries, in order of arrival. Never empty. */
export interface Group {
  readonly key: string
  /** Goes as it is, and takes no more. */
  readonly isClosed: boolean
  first: Entry
  last: Entry
  rows: number
}

const empty: Decision = { _tag: "Empty" }

export class RequestQueue {
  readonly #options: QueueOptions
  readonly #largestFirst: ReadonlyArray<number>
  readonly #groups = new Map<string, Group>()
  readonly #closed = new Set<Group>()
  /** The rows at which a group does not wait any more. */
  readonly #enough: number
  #size = 0

  constructor(options: QueueOptions) {
    this.#options = options
    this.#largestFirst = options.preferredBatchSizes.toSorted((a, b) => b - a)
    this.#enough = this.#largestFirst.at(-1) ?? options.maxBatchSize
  }

  get size(): number {
    return this.#size
  }

  /** False where the queue is full. The key is that of the entries that it may share a batch with. */
  offer(entry: Entry, key: string): boolean {
    if (this.#size >= this.#options.maxQueueSize) return false
    this.#size += 1
    const group = this.#groups.get(key)
    if (group === undefined) {
      this.#groups.set(key, open(key, entry, false))
    } else {
      append(group, entry)
    }
    return true
  }

  /** Takes back what was taken, to go ahead of all that waits, as one batch; also where the queue is full. */
  retry([first, ...rest]: ReadonlyArray<Entry>): void {
    if (first === undefined) return
    const group = open("", first, true)
    for (const entry of rest) append(group, entry)
    this.#closed.add(group)
    this.#size += 1 + rest.length
  }

  /** Harmless where the entry is not queued (any more). */
  remove(entry: Entry): void {
    const { group, previous, next } = entry
    if (group === undefined) return
    this.#size -= 1
    group.rows -= entry.request.rows
    if (previous === undefined && next === undefined) {
      if (group.isClosed) this.#closed.delete(group)
      else this.#groups.delete(group.key)
    }
    if (previous !== undefined) previous.next = next
    else if (next !== undefined) group.first = next
    if (next !== undefined) next.previous = previous
    else if (previous !== undefined) group.last = previous
    entry.group = entry.previous = entry.next = undefined
  }

  decide(now: number): Decision {
    for (const group of this.#closed) return { _tag: "Take", group }
    const oldest = this.#oldest()
    if (oldest === undefined) return empty
    const until = oldest.first.queuedAt + this.#options.maxQueueDelay
    if (now >= until || oldest.rows >= this.#enough) return { _tag: "Take", group: oldest }
    // While the oldest group waits for more, another one may already be complete.
    for (const group of this.#groups.values()) if (group.rows >= this.#enough) return { _tag: "Take", group }
    return { _tag: "Wait", until }
  }

  /** Takes the next batch of a group out: as many entries as fit, in order, and at least one. */
  take(group: Group): Array<Entry> {
    const limit = group.isClosed ? group.rows : this.#limit(group.rows)
    const taken: Array<Entry> = []
    let rows = 0
    for (let entry: Entry | undefined = group.first; entry !== undefined; entry = entry.next) {
      rows += entry.request.rows
      if (taken.length > 0 && rows > limit) break
      taken.push(entry)
    }
    for (const entry of taken) this.remove(entry)
    return taken
  }

  /** Takes everything out. */
  clear(): Array<Entry> {
    const taken: Array<Entry> = []
    for (const { first } of [...this.#closed, ...this.#groups.values()]) {
      for (let entry: Entry | undefined = first; entry !== undefined; entry = entry.next) taken.push(entry)
    }
    for (const entry of taken) this.remove(entry)
    return taken
  }

  #oldest(): Group | undefined {
    let oldest: Group | undefined
    for (const group of this.#groups.values()) {
      if (oldest === undefined || group.first.queuedAt < oldest.first.queuedAt) oldest = group
    }
    return oldest
  }

  /** The rows of a batch from a group with so many: no more than the largest preferred size they reach. */
  #limit(rows: number): number {
    const { maxBatchSize } = this.#options
    if (rows >= maxBatchSize) return maxBatchSize
    return this.#largestFirst.find((size) => size <= rows) ?? maxBatchSize
  }
}

const open = (key: string, entry: Entry, isClosed: boolean): Group =>
  (entry.group = { key, isClosed, first: entry, last: entry, rows: entry.request.rows })

const append = (group: Group, entry: Entry): void => {
  entry.group = group
  entry.previous = group.last
  group.last.next = entry
  group.last = entry
  group.rows += entry.request.rows
}
