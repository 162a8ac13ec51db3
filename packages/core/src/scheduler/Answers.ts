/**
 * How requests end: each once, wherever it stands, told to its caller and to the statistics. When and with what is
 * decided elsewhere.
 */
import { Result } from "effect"
import type { Deadlines } from "./Deadlines.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Response } from "../request/Request.ts"
import { Ordering } from "./Ordering.ts"
import type { Queue } from "./Queue.ts"
import type { ComputeDurations, FailureReason, ModelStatistics } from "../metrics/ModelStatistics.ts"

export interface AnswersOptions {
  /** Whether answers keep the order of their requests. */
  readonly preserveOrdering: boolean
  readonly queue: Queue
  readonly deadlines: Deadlines<QueuedRequest>
  readonly statistics: ModelStatistics
  /** The monotonic time in nanoseconds. */
  readonly nanos: () => number
  /** Of a caller, on its answer. */
  readonly onDefect: (defect: unknown) => void
  /** One request more has ended; its caller is told next. */
  readonly onEnd: () => void
}

export class Answers {
  /** Undefined where answers leave as they are ready. */
  readonly ordering: Ordering | undefined
  readonly #options: AnswersOptions

  constructor(options: AnswersOptions) {
    this.#options = options
    this.ordering = options.preserveOrdering ? new Ordering((entry, outcome) => this.#tell(entry, outcome)) : undefined
  }

  /** Harmless where it has ended already, as are the others. */
  succeed(
    entry: QueuedRequest,
    answer: Result.Success<Response, InferenceError>,
    elapsed: number,
    compute: ComputeDurations,
  ): void {
    if (!this.#end(entry)) return
    const { statistics, nanos } = this.#options
    entry.statistics.succeeded(elapsed, elapsed - compute.input - compute.infer - compute.output, compute)
    if (entry.request.emit !== undefined) {
      statistics.response(entry.responses)?.emptyResponse.add(nanos() - entry.respondedAt)
    }
    if (this.ordering === undefined) this.#tell(entry, answer)
    else this.ordering.settle(entry, answer)
  }

  refuse(entry: QueuedRequest, reason: FailureReason, error: InferenceError): void {
    const { ordering } = this
    const outcome = Result.fail(error)
    if (this.#end(entry)) {
      this.#failed(entry, reason)
      if (ordering !== undefined && reason === "BACKEND") return ordering.settle(entry, outcome)
      // It has ended, but its answer may still wait for its turn.
    } else if (ordering?.holds(entry) !== true) return
    ordering?.leave(entry)
    this.#tell(entry, outcome)
  }

  /** Without a word to its caller, who has left. */
  cancel(entry: QueuedRequest): void {
    if (this.#end(entry)) this.#failed(entry, "CANCELED")
    this.#options.deadlines.delete(entry)
    this.ordering?.leave(entry)
  }

  #end(entry: QueuedRequest): boolean {
    if (entry.done) return false
    entry.done = true
    this.#options.onEnd()
    if (entry.running === undefined) this.#options.queue.remove(entry)
    else entry.running.leave(entry)
    return true
  }

  #failed(entry: QueuedRequest, reason: FailureReason): void {
    const { statistics, nanos } = this.#options
    const now = nanos()
    entry.statistics.failed(reason, now - entry.queuedAt)
    if (reason === "CANCELED") {
      statistics.cancelledRows[entry.running === undefined ? "queue" : "instance"] += entry.request.rows
    }
    if (entry.request.emit === undefined || entry.running === undefined) return
    const response = statistics.response(entry.responses)
    const ended = reason === "CANCELED" ? response?.cancel : response?.fail
    ended?.add(now - entry.respondedAt)
  }

  /** What a caller throws is its own failure: it keeps back neither the answers of others nor an instance. */
  #tell(entry: QueuedRequest, outcome: Result.Result<Response, InferenceError>): void {
    this.#options.deadlines.delete(entry)
    try {
      entry.reply(outcome)
    } catch (defect) {
      this.#options.onDefect(defect)
    }
  }
}
