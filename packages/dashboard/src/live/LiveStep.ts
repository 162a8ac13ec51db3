/**
 * One step of the live view: a second of the process and of every model that was active in it. A number that is 0, and
 * a list or object that is empty, is left out of a model's part.
 */
import type { LatencyHistogram } from "./LatencyHistogram.ts"

/** Length of a step, in milliseconds. A step is longer if the event loop was late. */
export const stepMillis = 1000

/** Steps that the server keeps: 10 minutes. It keeps fewer if they exceed `maxRingBytes`. */
export const maxSteps = 600

/** Maximum size of the kept steps as JSON, in bytes. */
export const maxRingBytes = 8 * 1024 * 1024

export interface LiveStep {
  /** Number of the step since the server started, from 1, without gaps. */
  readonly index: number
  /** End of the step, in milliseconds since the epoch. */
  readonly time: number
  /** Length of the step on the monotonic clock, in milliseconds. */
  readonly millis: number
  readonly process: ProcessStep
  /** Models with any activity in the step. A model that is absent had none. */
  readonly models: ReadonlyArray<ModelStep>
}

/** The process of the server. Values without a range are those at the end of the step. */
export interface ProcessStep {
  /** CPU time of all threads as a share of one core: 1 is one busy core, 2.5 are two and a half. */
  readonly cpu: number
  /** Resident memory, in bytes. */
  readonly memory: number
  /** Used part of V8's heap, in bytes. */
  readonly heap: number
  /** Memory of buffers outside the heap, in bytes. */
  readonly buffers: number
  /** Longest delay of the event loop in the step, in milliseconds. */
  readonly delayMax: number
  /** 99th percentile of the delays in the step, in milliseconds. */
  readonly delayP99: number
  /** Open connections of all ports except that of metrics. */
  readonly connections: number
  /** Requests without a response. */
  readonly inFlight: number
  /** Memory that callers make the server hold, in bytes. `heldLimit` of the opening is its limit. */
  readonly held: number
}

/** Reasons of failed requests, as the label `reason` of `nv_inference_request_failure`. */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER"

/** Refusals by the queue of a model, which are also counted as REJECTED. */
export type QueueRefusal = "full" | "timeout" | "deadline"

/** One version of a model. Counts are those of the step; rates follow with `millis`. */
export interface ModelStep {
  readonly name: string
  readonly version: string
  /** Requests that succeeded, including those that the cache answered. */
  readonly requests?: number
  /** Requests that failed, by reason. */
  readonly errors?: { readonly [R in FailureReason]?: number }
  readonly refusals?: { readonly [R in QueueRefusal]?: number }
  /** Rows of the executed batches and of the answers from the cache. */
  readonly rows?: number
  /** Executed batches by size: pairs of rows and executions, the smallest size first. */
  readonly batches?: ReadonlyArray<number>
  /** Latencies of the requests that succeeded, from acceptance to response. */
  readonly latency?: LatencyHistogram
  /**
   * Microseconds in the queue, into the memory of the instance, in the execution and out of it: sums over the requests
   * that succeeded. Each request of a batch counts the whole time of the batch.
   */
  readonly parts?: readonly [queue: number, input: number, compute: number, output: number]
  /** Requests in the queue at the end of the step. */
  readonly queue?: number
  /** Age of the oldest of them, in milliseconds. */
  readonly oldest?: number
  /** Busy instances, as an average over the step: from 0 to the `instances` of the model. */
  readonly busy?: number
  /** Requests that the cache answered, and those whose answer went to it. */
  readonly hits?: number
  readonly misses?: number
  /** Open sequences at the end of the step. */
  readonly sequences?: number
}
