/**
 * How requests end: each once, wherever it stands, told to its caller and to the statistics. When and with what is
 * decided elsewhere.
 */
import { Result } from "effect"
import type { Deadlines } from "./Deadlines.ts"
import type { Entry } from "./Entry.ts"
import type { InferenceError } from "./Errors.ts"
import type { Response } from "./Inference.ts"
import type { RequestQueue } from "./RequestQueue.ts"
import type { ComputeDurations, FailureReason, Statistics } from "./Statistics.ts"

export interface AnswersOptions {
  readonly queue: RequestQueue
  readonly deadlines: Deadlines<Entry>
  readonly statistics: Statistics
  /** The monotonic time in nanoseconds. */
  readonly nanos: () => number
  /** Of a caller, on its answer. */
  readonly onDefect: (defect: unknown) => void
  /** One request more has ended; its caller is told next. */
  readonly onEnd: () => void
}

export class Answers {
  readonly #options: AnswersOptions

  constructor(options: AnswersOptions) {
    this.#options = options
  }

  /** Harmless where it has ended already, as are the others. */
  succeed(
    entry: Entry,
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
    this.#tell(entry, answer)
  }

  refuse(entry: Entry, reason: FailureReason, error: InferenceError): void {
    if (!this.#end(entry)) return
    this.#failed(entry, reason)
    this.#tell(entry, Result.fail(error))
  }

  /** Without a word to its caller, who has left. */
  cancel(entry: Entry): void {
    if (this.#end(entry)) this.#failed(entry, "CANCELED")
  }

  #end(entry: Entry): boolean {
    if (entry.done) return false
    entry.done = true
    this.#options.onEnd()
    this.#options.deadlines.delete(entry)
    if (entry.running === undefined) this.#options.queue.remove(entry)
    else entry.running.leave(entry)
    return true
  }

  #failed(entry: Entry, reason: FailureReason): void {
    const { statistics, nanos } = this.#options
    const now = nanos()
    entry.statistics.failed(reason, now - entry.queuedAt)
    if (entry.request.emit === undefined || entry.running === undefined) return
    const response = statistics.response(entry.responses)
    const ended = reason === "CANCELED" ? response?.cancel : response?.fail
    ended?.add(now - entry.respondedAt)
  }

  /** What a caller throws is its own failure: it keeps back neither the answers of others nor an instance. */
  #tell(entry: Entry, outcome: Result.Result<Response, InferenceError>): void {
    try {
      entry.reply(outcome)
    } catch (defect) {
      this.#options.onDefect(defect)
    }
  }
}
