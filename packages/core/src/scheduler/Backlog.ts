/**
 * Estimates how long the queue takes to drain, from the durations of earlier batches. A rejected request carries the
 * estimate as its retry delay. Computed only for a rejection.
 */
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"

/** Limits of the estimate, in milliseconds. */
const bounds = { min: 1, max: 60_000 }

/** The estimate before the first batch, in milliseconds: the smallest Retry-After of HTTP. */
export const unknownDrainTime = 1000

/** Milliseconds until `queued` requests have drained, at this number of concurrent batches. */
export const drainTime = (
  queued: number,
  concurrency: number,
  { computeInput, computeInfer, computeOutput, executionCount }: ModelStatistics,
): number => {
  // Counted by requests: those of a batch have all of its time each.
  const requests = computeInfer.count
  if (requests === 0 || executionCount === 0 || concurrency === 0) return unknownDrainTime
  const batchMillis = (computeInput.ns + computeInfer.ns + computeOutput.ns) / requests / 1e6
  const requestsOfBatch = Math.max(1, requests / executionCount)
  const millis = Math.ceil((queued / requestsOfBatch / concurrency) * batchMillis)
  return Math.min(Math.max(millis, bounds.min), bounds.max)
}
