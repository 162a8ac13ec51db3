/**
 * How long it will take until what is queued has had its turn: what a request that finds no room is told, so that callers come back
 * when it is worth it. An estimate from what the model has done so far, asked only when there is a refusal.
 */
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"

/** Milliseconds; nobody is told to come sooner or later than so. */
const bounds = { least: 1, most: 60_000 }

/** Milliseconds, where there is nothing to tell it from: the least that HTTP can say. */
export const unknown = 1000

/** Milliseconds until `queued` requests are gone, with so many batches at one time. */
export const drainTime = (
  queued: number,
  concurrency: number,
  { computeInput, computeInfer, computeOutput, executionCount }: ModelStatistics,
): number => {
  // Counted by requests: those of a batch have all of its time each.
  const requests = computeInfer.count
  if (requests === 0 || executionCount === 0 || concurrency === 0) return unknown
  const batchMillis = (computeInput.ns + computeInfer.ns + computeOutput.ns) / requests / 1e6
  const requestsOfBatch = Math.max(1, requests / executionCount)
  const millis = Math.ceil((queued / requestsOfBatch / concurrency) * batchMillis)
  return Math.min(Math.max(millis, bounds.least), bounds.most)
}
