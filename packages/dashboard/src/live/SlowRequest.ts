/** One of the slowest requests of the last minutes. It has no contents of tensors. */
import type { FailureReason } from "./LiveStep.ts"

/** Requests that the server keeps. */
export const maxSlowRequests = 50

/** Milliseconds after which the server forgets a request: 10 minutes. */
export const slowRequestAge = 600_000

export interface SlowRequest {
  readonly name: string
  readonly version: string
  /** Id that the caller gave, cut off after 200 characters; empty without one. */
  readonly id: string
  /** End of the request, in milliseconds since the epoch. */
  readonly time: number
  /** Milliseconds from acceptance to response. */
  readonly millis: number
  readonly outcome: "success" | FailureReason
  /** Rows of the batch that it was executed in; 0 for a request that was not executed. */
  readonly batch: number
  /**
   * Milliseconds in the queue, into the memory of the instance, in the execution and out of it; absent for a request
   * that failed.
   */
  readonly parts?: readonly [queue: number, input: number, compute: number, output: number]
}
