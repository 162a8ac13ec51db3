/** The interface of the scheduler's queues. Time is an argument; nothing blocks. */
import type { InferenceError } from "../error/InferenceError.ts"
import type { Instance } from "../instance/Instance.ts"
import type { SequenceCounts } from "../metrics/SequenceCounts.ts"
import type { GroupOrder } from "../model/Batching.ts"
import type { Request } from "../request/Request.ts"
import type { MovableSequences } from "../transfer/MovableSequences.ts"
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

/** A queue from which requests leave as time passes. */
export interface TimedQueue {
  /** The earliest time at which something may expire; infinite for none. */
  readonly expiresAt: number
  expire(now: number): void
}

export interface Queue {
  /** Undefined if only executions and callers take requests out. */
  readonly timed?: TimedQueue
  /** Whether some requests may be executed by one instance alone. Default false. */
  readonly isPinned?: boolean
  readonly size: number
  /** Requests of `size` whose sequence waits for a slot. Default 0. */
  readonly backlogged?: number
  /** Undefined without sequences. */
  readonly movable?: MovableSequences
  /** Absent without sequences. */
  counts?(now: number): SequenceCounts
  /** When the request that has waited longest was submitted; undefined for an empty queue. Looks at all requests. */
  readonly oldest: number | undefined
  /** Rows that would go before those of this request; absent or undefined if that is unknown. */
  rowsAhead?(request: Request): number | undefined
  /** How long this request waits at most, in nanoseconds, however many go before it. Default: for any time. */
  longestWait?(request: Request): number
  /** The requests that go next, in order. They may leave during the iteration. */
  front?(): Iterable<QueuedRequest>
  /** The request that should leave a full queue in favour of this one; undefined if none should. */
  displaceable?(request: Request): QueuedRequest | undefined
  /** Why the queue cannot take the request, even if it has room; undefined if it can. */
  refusal?(request: Request): InferenceError | undefined
  /** False if the queue is full. Requests with the same key may share a batch. */
  offer(queued: QueuedRequest, key: string): boolean
  /** The limit for which the queue has no room for a request; undefined for its maximum size. */
  fullReason?(request: Request): string | undefined
  /** Queues requests again, as one batch ahead of all others, even if the queue is full. */
  retry(requests: ReadonlyArray<QueuedRequest>): void
  /** Does nothing for a request that is not queued. */
  remove(queued: QueuedRequest): void
  /** Whether `decide` would take a batch for this instance. */
  isReady(now: number, instance?: Instance): boolean
  /** The next batch for this instance: as many requests as fit, in order, and at least one. */
  decide(now: number, instance?: Instance): Decision
  /** A batch that `decide` returned has ended, with all its replies. */
  ended?(requests: ReadonlyArray<QueuedRequest>, now: number, instance: Instance): void
  /** Whether an executed request may be queued for another execution. Default false. */
  readonly canResume?: boolean
  /** Queues an executed request for another execution. Returns the error if its sequence is over. */
  resume?(queued: QueuedRequest, now: number): InferenceError | undefined
  /** These instances ask for batches from now on, and those that still have pinned requests. */
  replaceInstances?(instances: ReadonlyArray<Instance>): void
  /** Calls `done` once no request is pinned to this instance any more, perhaps before this returns. */
  vacated?(instance: Instance, done: () => void): void
  /** The instance executes nothing any more. */
  instanceFailed?(instance: Instance): void
  /** Takes no further sequence. Calls `done` once none has a slot or waits for one, perhaps before this returns. */
  endSequences?(done: () => void): void
  /** No new call reaches the model: further requests of live sequences reach its next version, or none. */
  retire?(): void
  /** Takes everything out. */
  clear(): Array<QueuedRequest>
}

/** The earliest of a time and the submissions of these requests. */
export const earliest = (requests: Iterable<QueuedRequest>, time: number): number => {
  for (const { queuedAt } of requests) if (queuedAt < time) time = queuedAt
  return time
}
