/**
 * The requests that an instance executes together, from the start to their replies. Each request has a separate reply.
 * Once no caller waits for any of them, the batch is interrupted.
 */
import { Cause, Exit, Result, type Tracer } from "effect"
import type { Admission } from "./Admission.ts"
import type { RequestCompletion } from "./RequestCompletion.ts"
import type * as Batch from "../batch/Batch.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"
import { ExecutionFailed, type InferenceError, InvalidRequest, Unrecoverable } from "../error/InferenceError.ts"
import { stopping } from "../error/Refusal.ts"
import type { Request, Trace } from "../request/Request.ts"
import * as RequestSpan from "../request/RequestSpan.ts"
import type { ExecutionResult, Instance, Interrupt } from "../instance/Instance.ts"
import type { ComputeDurations, ModelStatistics } from "../metrics/ModelStatistics.ts"

export interface RunningBatchOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly completion: RequestCompletion
  readonly admission: Admission
  readonly statistics: ModelStatistics
  /** The monotonic time in nanoseconds. */
  readonly nanos: () => number
  readonly currentTimeMillis: () => number
  readonly batchOf: (requests: ReadonlyArray<Request>) => Batch.Batch
  /** Returns a request to the queue for another execution; undefined if the model is not configured for that. */
  readonly resume: ((queued: QueuedRequest) => InferenceError | undefined) | undefined
  /** Whether another scheduler, ahead of this one, queues such a request. */
  readonly passesReschedules: boolean
  /** Receives the requests of a batch that has ended, after their replies. */
  readonly onSettled: ((requests: ReadonlyArray<QueuedRequest>, instance: Instance) => void) | undefined
  /** Executes requests again, as one batch; undefined for a model without retries. */
  readonly retry: ((requests: ReadonlyArray<QueuedRequest>) => void) | undefined
  /** Receives an error that makes the model unusable. */
  readonly onUnrecoverable: (error: Unrecoverable) => void
  /** Receives a defect that ends an instance. */
  readonly onDefect: (instance: string, cause: Cause.Cause<InferenceError>) => void
  /** Undefined without a tracer. */
  readonly spans?: RequestSpan.SpanSource | undefined
}

export class RunningBatch {
  /** Index among the batches of the dispatcher. */
  place = 0
  readonly #options: RunningBatchOptions
  readonly #instance: Instance
  readonly #requests: ReadonlyArray<QueuedRequest>
  readonly #startedAt: number
  /** Number of requests without a reply. */
  #waiting: number
  #interrupt: Interrupt | undefined
  /** Called when the batch has ended; undefined before its start. */
  #free: ((endedAt: number) => void) | undefined
  /** Time of the first interruption, in monotonic nanoseconds. */
  #interruptedAt: number | undefined
  #isSettled = false
  #rows = 0
  /** The end that Admission.ts expects; undefined before the execution. */
  #expectedEnd: number | undefined
  #span: Tracer.Span | undefined

  constructor(options: RunningBatchOptions, instance: Instance, requests: ReadonlyArray<QueuedRequest>) {
    this.#options = options
    this.#instance = instance
    this.#requests = requests
    this.#waiting = 0
    this.#startedAt = options.nanos()
    for (const queued of requests) {
      if (queued.isEmpty) continue
      this.#waiting += 1
      queued.running = this
      queued.respondedAt = this.#startedAt
    }
  }

  /**
   * `free` is called when the instance has ended the batch, with the monotonic time in nanoseconds: before the replies,
   * and perhaps before this returns.
   */
  start(free: (endedAt: number) => void): void {
    this.#free = free
    try {
      const batch = this.#traced(this.#options.batchOf(this.#requests.map(({ request }) => request)))
      this.#rows = batch.rows
      this.#options.statistics.executing(batch.rows, this.#waiting)
      this.#expectedEnd = this.#options.admission.started(batch.rows, this.#startedAt)
      const interrupt = this.#instance.execute(batch, this.#end)
      if (this.#isSettled) return
      this.#interrupt = interrupt
      if (this.#interruptedAt !== undefined) interrupt()
    } catch (defect) {
      // An exception of an instance fails only this batch.
      this.#end(Exit.die(defect))
    }
  }

  #traced(batch: Batch.Batch): Batch.Batch {
    const { spans, model } = this.#options
    if (spans === undefined) return batch
    const requests = batch.requests.flatMap(({ trace }) => trace?.span ?? [])
    if (requests.length === 0) return batch
    const span = RequestSpan.ofBatch(spans.tracer, spans.clock, `batch ${model}`, requests)
    span.attribute("nereid.rows", batch.rows)
    span.attribute("nereid.requests", batch.requests.length)
    span.attribute("nereid.instance", this.#instance.name)
    for (const { trace } of batch.requests) trace?.joins?.(span)
    this.#span = span
    return { ...batch, span }
  }

  /** A request has ended. */
  leave(queued: QueuedRequest): void {
    this.#waiting -= 1
    if (this.#waiting === 0) this.interrupt()
    else if (this.#instance.interruptsRequests) this.#interrupt?.(this.#requests.indexOf(queued))
  }

  interrupt(): void {
    this.#interruptedAt ??= this.#options.nanos()
    this.#interrupt?.()
  }

  /** Milliseconds that a stop waits for the batch, which was interrupted; Infinity: until it ends. */
  get interruptTimeout(): number {
    const { interruptTimeout: limit = Infinity } = this.#instance
    const now = this.#options.nanos()
    return Math.max(0, limit - (now - (this.#interruptedAt ?? now)) / 1e6)
  }

  /** Ends the batch here, after its interruption. What its instance still does has no effect. */
  abandon(): void {
    this.#end(Exit.interrupt())
  }

  readonly #end = (exit: Exit.Exit<ExecutionResult, InferenceError>): void => {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#interrupt = undefined
    const endedAt = this.#options.nanos()
    if (this.#expectedEnd !== undefined) {
      const failure = this.#interruptedAt === undefined ? "failed" : "interrupted"
      // Requests that fail may do so at once: a batch without an answer says nothing of others.
      const end = Exit.isSuccess(exit) && exit.value.outcomes.some(Result.isSuccess) ? "complete" : failure
      this.#options.admission.ended(this.#expectedEnd, this.#rows, endedAt, endedAt - this.#startedAt, end)
    }
    this.#free?.(endedAt)
    this.#span?.end(this.#options.spans?.clock.currentTimeNanosUnsafe() ?? 0n, exit)
    this.#settle(exit, endedAt - this.#startedAt)
    this.#options.onSettled?.(this.#requests, this.#instance)
  }

  #settle(exit: Exit.Exit<ExecutionResult, InferenceError>, total: number): void {
    if (Exit.isSuccess(exit)) this.#complete(exit.value, total)
    else this.#fail(exit.cause, total)
  }

  #complete(execution: ExecutionResult, total: number): void {
    const { completion, statistics, currentTimeMillis } = this.#options
    const { outcomes, inputDuration: input, outputDuration: output } = execution
    const infer = execution.inferDuration ?? total - input - output
    const compute = { input, infer, output, batch: this.#rows }
    let rows = 0
    let emptyRows = 0
    // Loops by index: an iterator's pairs would be garbage of every request.
    for (let index = 0; index < this.#requests.length; index++) {
      const queued = this.#requests[index]
      if (queued === undefined) continue
      const { request } = queued
      if (queued.isEmpty) {
        emptyRows += request.rows
        continue
      }
      if (request.trace !== undefined) {
        trace(request.trace, compute, this.#startedAt + total)
        request.trace.batch?.(this.#rows)
      }
      const outcome = outcomes[index]
      if (outcome !== undefined && Result.isSuccess(outcome)) rows += request.rows
    }
    // Before the replies, so that callers that read the statistics next find their requests counted.
    if (rows > 0) statistics.executed(rows, compute, currentTimeMillis(), emptyRows)
    for (let index = 0; index < this.#requests.length; index++) {
      const queued = this.#requests[index]
      const outcome = outcomes[index]
      if (queued === undefined) continue
      if (outcome === undefined) completion.refuse(queued, "BACKEND", this.#missing())
      else if (Result.isFailure(outcome)) this.#refuse(queued, outcome.failure)
      else if (outcome.success.isRescheduled === true && !this.#options.passesReschedules)
        this.#reschedule(queued, total, compute)
      else completion.succeed(queued, outcome, this.#startedAt - queued.queuedAt + total, compute)
    }
  }

  #reschedule(queued: QueuedRequest, total: number, compute: ComputeDurations): void {
    const { completion, resume } = this.#options
    if (resume === undefined) return completion.refuse(queued, "BACKEND", unreschedulable())
    if (queued.done) return
    completion.executed(queued, this.#startedAt - queued.queuedAt + total, compute)
    const problem = resume(queued)
    if (problem !== undefined) completion.refuse(queued, "OTHER", problem)
  }

  #fail(cause: Cause.Cause<InferenceError>, total: number): void {
    for (const { request } of this.#requests) {
      request.trace?.at("COMPUTE_START", this.#startedAt)
      request.trace?.at("COMPUTE_END", this.#startedAt + total)
    }
    if (this.#bisect(cause)) return
    const error = this.#errorOf(cause)
    for (const queued of this.#requests) this.#refuse(queued, error)
    if (Cause.hasDies(cause)) this.#options.onDefect(this.#instance.name, cause)
  }

  /**
   * Whether to execute the halves separately. Not if the instance itself has died, which would fail further batches
   * too.
   */
  #bisect(cause: Cause.Cause<InferenceError>): boolean {
    const { retry } = this.#options
    if (retry === undefined || this.#waiting < 2 || this.#interruptedAt !== undefined || Cause.hasInterruptsOnly(cause))
      return false
    if (this.#instance.status() !== "available" || this.#errorOf(cause) instanceof Unrecoverable) return false
    const waiting = this.#requests.filter((queued) => !queued.done)
    for (const queued of waiting) queued.running = undefined
    const middle = Math.ceil(waiting.length / 2)
    retry(waiting.slice(0, middle))
    retry(waiting.slice(middle))
    return true
  }

  #refuse(queued: QueuedRequest, error: InferenceError): void {
    // Before the reply: a caller that checks readiness next must see that the model is not ready.
    if (error instanceof Unrecoverable) this.#options.onUnrecoverable(error)
    this.#options.completion.refuse(queued, "BACKEND", error)
  }

  #errorOf(cause: Cause.Cause<InferenceError>): InferenceError {
    const failure = Cause.findError(cause)
    if (Result.isSuccess(failure)) return failure.success
    if (Cause.hasInterruptsOnly(cause)) return stopping()
    const message = `Failed to process the request(s) for model '${this.#instance.name}', message: see the server log`
    return new ExecutionFailed({ message })
  }

  #missing(): ExecutionFailed {
    return new ExecutionFailed({
      message: `model '${this.#options.model}' returned fewer responses than its batch has requests`,
    })
  }
}

/** In the words of Triton. */
const unreschedulable = () =>
  new InvalidRequest({
    message:
      "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle " +
      "such a flag.",
  })

/** The parts of an execution, one behind the other up to its end. */
const trace = (trace: Trace, { input, infer, output }: ComputeDurations, endedAt: number) => {
  trace.at("COMPUTE_START", endedAt - output - infer - input)
  trace.at("COMPUTE_INPUT_END", endedAt - output - infer)
  trace.at("COMPUTE_OUTPUT_START", endedAt - output)
  trace.at("COMPUTE_END", endedAt)
}
