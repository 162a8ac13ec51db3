/** What the scheduler and its parts ask of a queue. Time comes in as a number, nothing waits in it. */
import type { QueuedRequest } from "./QueuedRequest.ts"

export interface QueueOptions {
  /** At least 1. */
  readonly maxBatchSize: number
  /** How long an entry may wait for others, in nanoseconds. */
  readonly maxQueueDelay: number
  readonly maxQueueSize: number
}

/** These go now, and have left; or wait until that time, or until the queue has changed. */
export type Decision =
  | { readonly _tag: "Take"; readonly entries: ReadonlyArray<QueuedRequest> }
  | { readonly _tag: "Wait"; readonly until: number }
  | { readonly _tag: "Empty" }

export const empty: Decision = { _tag: "Empty" }

export interface Queue {
  readonly size: number
  /** False where the queue is full. The key is that of the entries that it may share a batch with. */
  offer(entry: QueuedRequest, key: string): boolean
  /** Takes back what was taken, to go ahead of all that waits, as one batch; also where the queue is full. */
  retry(entries: ReadonlyArray<QueuedRequest>): void
  /** Harmless where the entry is not queued (any more). */
  remove(entry: QueuedRequest): void
  /** The next batch: as many entries as fit, in order, and at least one. */
  decide(now: number): Decision
  /** Takes everything out. */
  clear(): Array<QueuedRequest>
}
