/**
 * One request on its way through the scheduler: it waits in the queue, or an instance has it, or it has ended. Data alone;
 * who moves it is its queue, RunningBatch.ts and, for its end, Scheduler.ts.
 */
import type { Reply, Request } from "../request/Inference.ts"
import type { Group } from "./Group.ts"
import type { RunningBatch } from "./RunningBatch.ts"
import type { RequestStatistics } from "../metrics/Statistics.ts"

export class Entry {
  readonly request: Request
  readonly reply: Reply
  /** Where it is counted. */
  readonly statistics: RequestStatistics
  /** When it was submitted, in the scheduler's nanoseconds. */
  readonly queuedAt: number
  /** Ended, in whatever way: its reply has been called, or never will be. */
  done = false
  /** Set while it is in the queue; the group's own, as are the two neighbours in it. */
  group: Group | undefined = undefined
  previous: Entry | undefined = undefined
  next: Entry | undefined = undefined
  /** Set once an instance has it. */
  running: RunningBatch | undefined = undefined
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
