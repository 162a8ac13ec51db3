/**
 * Ends requests: removes a request from the queue or its batch, counts it in the statistics and calls its reply, each
 * once. The scheduler and RunningBatch.ts decide when a request ends, and with which outcome.
 */
import { Result } from "effect"
import type { Admission } from "./Admission.ts"
import type { Deadlines } from "./Deadlines.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Response } from "../request/Request.ts"
import { Ordering } from "./Ordering.ts"
import type { Patience } from "./Patience.ts"
import type { Queue } from "./Queue.ts"
import type { ComputeDurations, FailureReason, ModelStatistics } from "../metrics/ModelStatistics.ts"

export interface RequestCompletionOptions {
  /** Whether replies keep the order of their requests. */
  readonly preserveOrdering: boolean
  readonly queue: Queue
  readonly deadlines: Deadlines<QueuedRequest>
  readonly statistics: ModelStatistics
  readonly admission: Admission
  /** Learns from the callers without a deadline; undefined for a model with a latency target. */
  readonly patience: Patience | undefined
  /** The monotonic time in nanoseconds. */
  readonly nanos: () => number
  /** Receives what a caller's reply function throws. */
  readonly onDefect: (defect: unknown) => void
  /** A request has ended. Called before its reply. */
  readonly onEnd: () => void
  /** A request has left the queue without an execution. */
  readonly onLeave: () => void
}

export class RequestCompletion {
  /** Undefined if replies need no order. */
  readonly ordering: Ordering | undefined
  readonly #options: RequestCompletionOptions

  constructor(options: RequestCompletionOptions) {
    this.#options = options
    this.ordering = options.preserveOrdering
      ? new Ordering((queued, outcome) => this.#reply(queued, outcome))
      : undefined
  }

  /** Does nothing for a request that has ended already, as do `refuse` and `cancel`. */
  succeed(
    queued: QueuedRequest,
    result: Result.Success<Response, InferenceError>,
    elapsed: number,
    compute: ComputeDurations,
  ): void {
    if (!this.#end(queued)) return
    const { statistics, nanos, patience } = this.#options
    const waited = elapsed - compute.input - compute.infer - compute.output
    queued.statistics.succeeded(elapsed, waited, compute, queued.request.id)
    if (queued.request.deadline === undefined)
      patience?.answered(elapsed, queued.queuedAt + elapsed, queued.request.connection)
    queued.continues = result.success.rest !== undefined
    if (queued.request.emit !== undefined && !queued.continues) {
      statistics.response(queued.responses)?.ended(nanos() - queued.respondedAt)
    }
    if (this.ordering === undefined) this.#reply(queued, result)
    else this.ordering.settle(queued, result)
  }

  /** Counts an execution after which the request goes on. */
  executed(queued: QueuedRequest, elapsed: number, compute: ComputeDurations): void {
    const waited = elapsed - compute.input - compute.infer - compute.output
    queued.statistics.succeeded(elapsed, waited, compute, queued.request.id)
    queued.running = undefined
  }

  refuse(queued: QueuedRequest, reason: FailureReason, error: InferenceError): void {
    const { ordering } = this
    const outcome = Result.fail(error)
    if (this.#end(queued, reason)) {
      this.#countFailure(queued, reason)
      if (ordering !== undefined && reason === "BACKEND") return ordering.settle(queued, outcome)
      // The request has ended, but its reply may still wait for its turn.
    } else if (ordering?.holds(queued) !== true) return
    ordering?.leave(queued)
    this.#reply(queued, outcome)
  }

  /** Ends the request without a reply. */
  cancel(queued: QueuedRequest): void {
    if (this.#end(queued, "CANCELED")) {
      this.#countFailure(queued, "CANCELED")
      const { patience, nanos } = this.#options
      const { deadline, emit, connection } = queued.request
      const now = nanos()
      if (deadline === undefined && emit === undefined) patience?.left(now - queued.queuedAt, now, connection)
    }
    this.#options.deadlines.delete(queued)
    this.ordering?.leave(queued)
  }

  #end(queued: QueuedRequest, reason?: FailureReason): boolean {
    if (queued.done) return false
    queued.done = true
    if (queued.predictedEnd > 0) this.#learn(queued, reason)
    queued.isCancelled = reason === "CANCELED"
    this.#options.onEnd()
    if (queued.running === undefined) this.#leave(queued)
    else queued.running.leave(queued)
    return true
  }

  #leave(queued: QueuedRequest): void {
    const { queue, onLeave } = this.#options
    queue.remove(queued)
    onLeave()
  }

  /** A failure of the model says nothing about predictions. */
  #learn({ predictedEnd }: QueuedRequest, reason: FailureReason | undefined): void {
    const { admission, nanos } = this.#options
    if (reason === undefined) admission.answered(nanos() - predictedEnd)
    else if (reason === "CANCELED") admission.abandoned(nanos() - predictedEnd)
  }

  #countFailure(queued: QueuedRequest, reason: FailureReason): void {
    const { statistics, nanos } = this.#options
    const now = nanos()
    queued.statistics.failed(reason, now - queued.queuedAt, queued.request.id)
    if (reason === "CANCELED") {
      statistics.cancelledRows[queued.running === undefined ? "queue" : "instance"] += queued.request.rows
    }
    if (queued.request.emit === undefined || queued.running === undefined) return
    const response = statistics.response(queued.responses)
    if (reason === "CANCELED") response?.cancel.add(now - queued.respondedAt)
    else response?.failed(now - queued.respondedAt)
  }

  /** An exception of one caller delays neither other replies nor an instance. */
  #reply(queued: QueuedRequest, outcome: Result.Result<Response, InferenceError>): void {
    this.#options.deadlines.delete(queued)
    try {
      queued.reply(outcome)
    } catch (defect) {
      this.#options.onDefect(defect)
    }
  }
}
