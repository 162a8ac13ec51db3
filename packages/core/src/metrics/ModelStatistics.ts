/**
 * Statistics of a model version: the counts and durations of the protocol's statistics extension, in plain counters
 * that the front ends read on demand. Success counts requests, `inferenceCount` rows, `executionCount` batches. A
 * failed request counts only in `fail` and by its reason. A request answered by the cache does not count in the
 * execution's parts.
 */
import type { ElementCounts } from "../batch/Padding.ts"

export class StatisticDuration {
  count = 0
  /** Nanoseconds in all. */
  ns = 0

  add(ns: number, count = 1): void {
    this.count += count
    this.ns += ns * count
  }
}

export class BatchStatistics {
  readonly computeInput = new StatisticDuration()
  readonly computeInfer = new StatisticDuration()
  readonly computeOutput = new StatisticDuration()
}

/** Of the nth response of each request of a decoupled model. */
export class ResponseStatistics {
  /** Until the model had it, since its compute began or the caller had the response before it. */
  readonly computeInfer = new StatisticDuration()
  readonly computeOutput = new StatisticDuration()
  readonly success = new StatisticDuration()
  readonly fail = new StatisticDuration()
  /** Requests that ended here, behind their last response. */
  readonly emptyResponse = new StatisticDuration()
  readonly cancel = new StatisticDuration()

  /** A failure in place of the response. It has no outputs, so all its time is computeInfer. */
  failed(ns: number): void {
    this.computeInfer.add(ns)
    this.fail.add(ns)
  }

  /** The end of a request behind its last response. */
  ended(ns: number): void {
    this.computeInfer.add(ns)
    this.emptyResponse.add(ns)
  }
}

/** Requests may have responses without end; these are counted one by one. */
const maxResponses = 1000

/**
 * REJECTED before it was queued or in the queue; CANCELED by the caller; BACKEND in an instance; OTHER anything else.
 */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER"

/** The parts of an execution, in nanoseconds: into the instance's memory, the run, and out of it. */
export interface ComputeDurations {
  readonly input: number
  readonly infer: number
  readonly output: number
  /** Rows of the batch. Default: unknown. */
  readonly batch?: number
}

/**
 * Requests that a queue refused or gave up: it was full, or too long to answer in time by its prediction, or the queue
 * timeout or the caller's deadline had passed.
 */
export interface QueueRefusals {
  full: number
  predicted: number
  timeout: number
  deadline: number
}

/**
 * Observes single requests and batches, for distributions that sums cannot represent. The arguments are those of the
 * Statistics methods.
 */
export interface Observer {
  readonly executing?: (rows: number, requests: number) => void
  readonly succeeded?: (total: number, queued: number, compute: ComputeDurations, id: string) => void
  readonly failed?: (reason: FailureReason, total: number, id: string) => void
  readonly firstResponse?: (total: number) => void
  readonly hit?: (total: number, queued: number, lookup: number) => void
  readonly missed?: (duration: number) => void
}

/** The statistics that single requests report. */
export type RequestStatistics = Pick<ModelStatistics, "succeeded" | "failed">

export class ModelStatistics {
  readonly success = new StatisticDuration()
  readonly fail = new StatisticDuration()
  readonly queue = new StatisticDuration()
  readonly computeInput = new StatisticDuration()
  readonly computeInfer = new StatisticDuration()
  readonly computeOutput = new StatisticDuration()
  readonly cacheHit = new StatisticDuration()
  readonly cacheMiss = new StatisticDuration()
  readonly failures: { [R in FailureReason]: number } = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 }
  /** Part of the failures with the reason REJECTED, for models with a queue here. */
  readonly queueRefusals: QueueRefusals = { full: 0, predicted: 0, timeout: 0, deadline: 0 }
  /** By rows of the batch. */
  readonly batches = new Map<number, BatchStatistics>()
  /** Of a decoupled model, by the response's place in its request, from 0. */
  readonly responses = new Map<number, ResponseStatistics>()
  /** Time until the model was ready; 0 for a remote model. */
  loadSeconds = 0
  /** Rows that were answered, also from the cache. */
  inferenceCount = 0
  /** Those from the cache. */
  cachedCount = 0
  executionCount = 0
  /** Elements of the inputs of batches that may be filled up: those of the requests, and those that were added. */
  readonly elements: ElementCounts = { given: 0, added: 0 }
  /** Cancelled rows: in the queue, or in an instance. */
  readonly cancelledRows = { queue: 0, instance: 0 }
  /** Milliseconds since the epoch; 0 before the first. */
  lastInference = 0
  /** Usually empty: each costs a call per request and per batch. */
  readonly observers = new Set<Observer>()

  /** One batch that an instance is given. */
  executing(rows: number, requests: number): void {
    for (const observer of this.observers) observer.executing?.(rows, requests)
  }

  /** The inputs of one batch that may be filled up. */
  filled({ given, added }: Readonly<ElementCounts>): void {
    this.elements.given += given
    this.elements.added += added
  }

  /** One execution that succeeded. `emptyRows` have filled its batch, and answered nothing. */
  executed(rows: number, compute: ComputeDurations, atMillis: number, emptyRows = 0): void {
    this.executionCount += 1
    this.inferenceCount += rows
    this.lastInference = atMillis
    const size = rows + emptyRows
    let batch = this.batches.get(size)
    if (batch === undefined) this.batches.set(size, (batch = new BatchStatistics()))
    batch.computeInput.add(compute.input)
    batch.computeInfer.add(compute.infer)
    batch.computeOutput.add(compute.output)
  }

  /** The nth response of a request, however it ends. Undefined behind those that are counted. */
  response(index: number): ResponseStatistics | undefined {
    let response = this.responses.get(index)
    if (response !== undefined || index >= maxResponses) return response
    this.responses.set(index, (response = new ResponseStatistics()))
    return response
  }

  /** The first response of a request to a decoupled model, `total` after the request was accepted. */
  firstResponse(total: number): void {
    for (const observer of this.observers) observer.firstResponse?.(total)
  }

  /** One request that was answered, `total` after it was accepted, of which `queued` in the queue. `id`: the caller's. */
  succeeded(total: number, queued: number, compute: ComputeDurations, id = ""): void {
    this.success.add(total)
    this.queue.add(queued)
    this.computeInput.add(compute.input)
    this.computeInfer.add(compute.infer)
    this.computeOutput.add(compute.output)
    for (const observer of this.observers) observer.succeeded?.(total, queued, compute, id)
  }

  /**
   * One request that was answered from the cache, `total` after it was accepted, of which finding the answer took
   * `lookup`.
   */
  hit(total: number, lookup: number, rows: number, atMillis: number): void {
    this.success.add(total)
    this.queue.add(total - lookup)
    this.cacheHit.add(lookup)
    this.inferenceCount += rows
    this.cachedCount += rows
    this.lastInference = atMillis
    for (const observer of this.observers) observer.hit?.(total, total - lookup, lookup)
  }

  /** One request whose answer went to the cache: looking for one, and inserting it. */
  missed(duration: number): void {
    this.cacheMiss.add(duration)
    for (const observer of this.observers) observer.missed?.(duration)
  }

  /** One request that failed, `total` after it was accepted. */
  failed(reason: FailureReason, total: number, id = ""): void {
    this.fail.add(total)
    this.failures[reason] += 1
    for (const observer of this.observers) observer.failed?.(reason, total, id)
  }
}
