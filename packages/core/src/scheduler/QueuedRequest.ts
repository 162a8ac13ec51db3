/**
 * One request in the scheduler: queued, executing or ended. Data only: its queue moves it (RequestGroup.ts),
 * RunningBatch.ts executes it, and RequestCompletion.ts ends it.
 */
import type { Reply, Request } from "../request/Request.ts"
import type { RequestStatistics } from "../metrics/ModelStatistics.ts"

/**
 * Requests of a queue that may share a batch, as a list in the order in which they leave. Never empty while in a queue.
 */
export interface RequestGroup {
  readonly key: string
  /** Leaves the queue as it is, and takes no further requests. */
  readonly isClosed: boolean
  first: QueuedRequest
  last: QueuedRequest
  rows: number
}

/** The execution of a request. */
export interface Executing {
  /** The request has ended: its caller waits no longer. */
  readonly leave: (request: QueuedRequest) => void
}

export class QueuedRequest {
  readonly request: Request
  readonly reply: Reply
  /** Where it is counted. */
  readonly statistics: RequestStatistics
  /** When it was submitted, in the scheduler's nanoseconds. */
  readonly queuedAt: number
  /** Whether it has ended: its reply was called, or never will be. */
  done = false
  /** Requests with the same key may share a batch. Set by a queue that holds all of them as one group. */
  key = ""
  /** Set while it is in the queue; the group's own, as are the two neighbours in it. */
  group: RequestGroup | undefined = undefined
  previous: QueuedRequest | undefined = undefined
  next: QueuedRequest | undefined = undefined
  /** Set once an instance has it. */
  running: Executing | undefined = undefined
  /** Of a decoupled model: responses so far. */
  responses = 0
  /** When its compute began, or its last response was taken. */
  respondedAt = 0

  constructor(request: Request, reply: Reply, statistics: RequestStatistics, queuedAt: number) {
    this.request = request
    this.reply = reply
    this.statistics = statistics
    this.queuedAt = queuedAt
  }
}
