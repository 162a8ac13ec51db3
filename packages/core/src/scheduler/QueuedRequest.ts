/**
 * One request in the scheduler: queued, executing or ended. Data only: its queue moves it (RequestGroup.ts),
 * RunningBatch.ts executes it, and RequestCompletion.ts ends it.
 */
import { constVoid } from "effect/Function"
import type { Reply, Request } from "../request/Request.ts"
import type { Expiry } from "./Expiries.ts"
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
  /** The last request of each turn; undefined while all have come in the order of their turns. */
  turns?: Map<number, QueuedRequest> | undefined
}

/** The requests of one connection in a queue (FairTurns.ts). */
export interface ConnectionShare {
  /** The turn behind its last request. */
  last: number
  /** Rows that are queued. */
  rows: number
}

/** The execution of a request. */
export interface Executing {
  /** The request has ended: its caller waits no longer. */
  readonly leave: (request: QueuedRequest) => void
}

export class QueuedRequest {
  /** Replaced by a queue that adds what it knows of the request. */
  request: Request
  readonly reply: Reply
  /** Where it is counted. */
  readonly statistics: RequestStatistics
  /** When it was submitted, or was queued again after an execution, in the scheduler's nanoseconds. */
  queuedAt: number
  /** When the answer to a request with a prediction is due, in the scheduler's nanoseconds; infinite for all others. */
  dueAt = Infinity
  /** When its answer was predicted for, on arrival; 0 without a prediction. */
  predictedEnd = 0
  /** Whether it only fills a row of a batch: no caller waits for it. */
  readonly isEmpty: boolean
  /** Whether it has ended: its reply was called, or never will be. */
  done = false
  /** Whether it goes on after its batch, which has ended. */
  continues = false
  /** Whether its caller has left, or its deadline has passed while it was executed. */
  isCancelled = false
  /** Requests with the same key may share a batch. Set by a queue that holds all of them as one group. */
  key = ""
  /** Its place among the requests of all connections (FairTurns.ts); 0 in a queue in the order of arrival. */
  turn = 0
  share: ConnectionShare | undefined = undefined
  /** Set while it is in the queue; the group's own, as are the two neighbours in it. */
  group: RequestGroup | undefined = undefined
  previous: QueuedRequest | undefined = undefined
  next: QueuedRequest | undefined = undefined
  /** Its place among the deadlines of the scheduler, and among the timeouts of its queue; undefined without one. */
  deadline: Expiry<QueuedRequest> | undefined = undefined
  timeout: Expiry<QueuedRequest> | undefined = undefined
  /** Its place in sequence/RequestPlaces.ts; undefined for a model without sequences. */
  place: object | undefined = undefined
  /** Set once an instance has it. */
  running: Executing | undefined = undefined
  /** Of a decoupled model: responses so far. */
  responses = 0
  /** When its compute began, or its last response was taken. */
  respondedAt = 0

  constructor(request: Request, reply: Reply, statistics: RequestStatistics, queuedAt: number, isEmpty = false) {
    this.request = request
    this.reply = reply
    this.statistics = statistics
    this.queuedAt = queuedAt
    this.isEmpty = isEmpty
    this.done = isEmpty
  }

  /** A row of a batch without a request: it is executed, and its outputs are dropped. */
  static empty(request: Request): QueuedRequest {
    return new QueuedRequest(request, constVoid, uncounted, 0, true)
  }
}

const uncounted: RequestStatistics = { succeeded: constVoid, failed: constVoid }
