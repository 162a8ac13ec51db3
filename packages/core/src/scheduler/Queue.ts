/** The interface of the scheduler's queues. Time is an argument; nothing blocks. */
import type { GroupOrder } from "../model/Batching.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"

export interface QueueOptions {
  /** At least 1. */
  readonly maxBatchSize: number
  /** How long a request may wait for others, in nanoseconds. */
  readonly maxQueueDelay: number
  readonly maxQueueSize: number
  /** Whether groups go one after the other, as in `Batching`. */
  readonly groupOrder: GroupOrder
}

/** These go now, and have left; or wait until that time, or until the queue has changed. */
export type Decision =
  | { readonly _tag: "Take"; readonly requests: ReadonlyArray<QueuedRequest> }
  | { readonly _tag: "Wait"; readonly until: number }
  | { readonly _tag: "Empty" }

export const empty: Decision = { _tag: "Empty" }

export interface Queue {
  readonly size: number
  /** When the request that has waited longest was submitted; undefined for an empty queue. Looks at all requests. */
  readonly oldest: number | undefined
  /** False if the queue is full. Requests with the same key may share a batch. */
  offer(queued: QueuedRequest, key: string): boolean
  /** Queues requests again, as one batch ahead of all others, even if the queue is full. */
  retry(requests: ReadonlyArray<QueuedRequest>): void
  /** Does nothing for a request that is not queued. */
  remove(queued: QueuedRequest): void
  /** The next batch: as many requests as fit, in order, and at least one. */
  decide(now: number): Decision
  /** Takes everything out. */
  clear(): Array<QueuedRequest>
}

/** The earliest of a time and the submissions of these requests. */
export const earliest = (requests: Iterable<QueuedRequest>, time: number): number => {
  for (const { queuedAt } of requests) if (queuedAt < time) time = queuedAt
  return time
}
