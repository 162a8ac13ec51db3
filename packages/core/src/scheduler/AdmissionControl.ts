/**
 * Refuses the requests of a scheduler that would be late: on arrival, and when an instance is ready to take them.
 * Admission.ts predicts. A request without a deadline is late beyond the latency target of the model, or beyond the
 * time that callers wait (Patience.ts). It is refused on arrival alone: once queued, its caller may wait for any time.
 * Requests that find a free instance are never refused.
 */
import { type InferenceError, QueueFull } from "../error/InferenceError.ts"
import { withoutStack } from "../error/Refusal.ts"
import { errorPrefix, type Request } from "../request/Request.ts"
import type { QueueRefusals } from "../metrics/ModelStatistics.ts"
import type { Admission } from "./Admission.ts"
import * as EarlyRefusal from "./EarlyRefusal.ts"
import type { Patience } from "./Patience.ts"
import type { Pool } from "./Pool.ts"
import type { Queue } from "./Queue.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"
import * as TimelyBatch from "./TimelyBatch.ts"

export interface AdmissionControlOptions {
  readonly admission: Admission
  /** The time that callers without a deadline wait; a number is the latency target of the model, in nanoseconds. */
  readonly patience: Patience | number
  readonly queue: Queue
  readonly pool: Pick<Pool, "concurrency" | "vacancies">
  readonly maxBatchSize: number
  readonly refusals: QueueRefusals
  /** Ends a request that is queued. */
  readonly refuse: (queued: QueuedRequest, error: InferenceError) => void
}

export class AdmissionControl {
  readonly #options: AdmissionControlOptions
  /** Whether a request with a due time has come since the queue was empty. */
  #hasDueTimes = false

  constructor(options: AdmissionControlOptions) {
    this.#options = options
  }

  /** Returns the refusal of a request that arrives. A request that is admitted keeps its prediction. */
  refusal(queued: QueuedRequest, now: number): QueueFull | undefined {
    const { request } = queued
    const left = this.#timeLeft(request, now)
    const predicted = this.#predict(request, left, now)
    if (predicted === undefined) return undefined
    if (!this.#options.admission.isInTime(predicted, left, now)) return this.#refuse(request, predicted, left)
    queued.predictedEnd = now + predicted
    if (request.deadline === undefined) return undefined
    queued.dueAt = request.deadline * 1e6
    this.#hasDueTimes = true
    return undefined
  }

  /** The same of a request that has not arrived completely, and may still be admitted. The refusals are shared. */
  preview(request: Request, now: number): QueueFull | undefined {
    const left = this.#timeLeft(request, now)
    const predicted = this.#predict(request, left, now)
    if (predicted === undefined || this.#options.admission.isInTime(predicted, left, now)) return undefined
    this.#options.refusals.predicted += 1
    return EarlyRefusal.late(overdue(predicted, left))
  }

  #predict(request: Request, left: number, now: number): number | undefined {
    if (left === Infinity) return undefined
    const { admission, queue, pool } = this.#options
    const rowsAhead = queue.rowsAhead?.(request)
    if (rowsAhead === undefined) return undefined
    const longestWait = queue.longestWait?.(request) ?? Infinity
    const { concurrency: slots, vacancies: free } = pool
    return admission.predict({ now, rows: request.rows, rowsAhead, slots, free, longestWait })
  }

  #refuse(request: Request, predicted: number, left: number): QueueFull {
    this.#options.refusals.predicted += 1
    return tooLate(request, predicted, left, request.deadline === undefined ? this.#limit : "are left")
  }

  /** Nanoseconds until the answer of a request that arrives is late; infinite if it may take any time. */
  #timeLeft({ deadline, emit, connection }: Request, now: number): number {
    if (deadline !== undefined) return deadline * 1e6 - now
    const { patience } = this.#options
    if (typeof patience === "number") return patience
    // A stream of responses is no answer that its caller waits for.
    return emit === undefined ? patience.at(now, connection) : Infinity
  }

  get #limit(): string {
    return typeof this.#options.patience === "number" ? "are the latency target" : "are what callers wait for"
  }

  /**
   * Refuses the requests at the front of the queue that could not end in time if they started now. One request stays in
   * any case: an instance that executes nothing would never show that it has become faster.
   */
  drop(now: number): void {
    const { queue, admission } = this.#options
    const maxBatchSize = Math.min(this.#options.maxBatchSize, admission.maxRows)
    if (queue.size === 0) this.#hasDueTimes = false
    admission.rowsInTime = Infinity
    if (!this.#hasDueTimes || queue.front === undefined) return
    const { late, rows } = TimelyBatch.choose(queue.front(), maxBatchSize, now, (rows) => admission.shortest(rows))
    admission.rowsInTime = rows
    // One stays in any case.
    const refused = late.length === queue.size ? late.slice(0, -1) : late
    for (const queued of refused) this.#drop(queued, now)
  }

  #drop(queued: QueuedRequest, now: number): void {
    const { admission, refusals, refuse } = this.#options
    const predicted = admission.shortest(queued.request.rows)
    if (queued.predictedEnd > 0) admission.answered(now + predicted - queued.predictedEnd)
    refusals.predicted += 1
    refuse(queued, tooLate(queued.request, predicted, queued.dueAt - now, "are left"))
  }
}

/** Rounded to a tenth of a millisecond. */
const millis = (nanos: number): number => Math.max(0, Math.round(nanos / 1e5) / 10)

/** Milliseconds by which a request would be late; in a queue that stands, until the queue has been worked off. */
const overdue = (predicted: number, left: number): number =>
  (predicted > left ? predicted - Math.max(0, left) : predicted) / 1e6

const tooLate = (request: Request, predicted: number, left: number, limit: string): QueueFull => {
  const problem = predicted > left ? "is too long to answer in time" : "has been too long for some time"
  const times = `an answer is expected in ${millis(predicted)} ms, and ${millis(left)} ms ${limit}`
  const message = `${errorPrefix(request)}The queue ${problem}: ${times}`
  const retryAfter = Math.max(1, Math.round(overdue(predicted, left)))
  return withoutStack(() => new QueueFull({ message, retryAfter }))
}
