/** Repeats a request a number of times, some at the same time. */
import { Refusal } from "../../api/Refusal.ts"
import type { Timed } from "../call/call.ts"
import { percentile } from "./Latencies.ts"

export const limits = { requests: 10_000, concurrency: 64 }

export interface LoadOptions {
  readonly requests: number
  readonly concurrency: number
}

export interface LoadResult {
  /** Of requests that succeeded, in milliseconds. */
  readonly latencies: ReadonlyArray<number>
  /** Requests that failed, by tag and status. */
  readonly errors: ReadonlyMap<string, number>
  /** Requests by the rows of their batch; empty if the server does not tell. */
  readonly batches: ReadonlyMap<number, number>
  /** Time since the start, in milliseconds. */
  readonly elapsed: number
}

export interface LoadSummary {
  readonly done: number
  readonly failed: number
  readonly perSecond: number
  /** Milliseconds; undefined if no request has succeeded. */
  readonly mean: number | undefined
  readonly p50: number | undefined
  readonly p95: number | undefined
  readonly p99: number | undefined
}

/**
 * Sends the requests, until all are answered or the signal aborts. `onProgress` has all answers since the start, after
 * each of them.
 */
export const run = async (
  { requests, concurrency }: LoadOptions,
  measure: (signal: AbortSignal) => Promise<Timed>,
  signal: AbortSignal,
  now: () => number,
  onProgress: (result: LoadResult) => void,
): Promise<LoadResult> => {
  const latencies: Array<number> = []
  const errors = new Map<string, number>()
  const batches = new Map<number, number>()
  const start = now()
  const result = (): LoadResult => ({ latencies, errors, batches, elapsed: now() - start })
  let sent = 0
  const worker = async () => {
    while (sent < requests && !signal.aborted) {
      sent += 1
      try {
        const { milliseconds, timing } = await measure(signal)
        latencies.push(milliseconds)
        if (timing?.batch !== undefined) increment(batches, timing.batch)
      } catch (error) {
        if (signal.aborted) return
        increment(errors, Refusal.of(error).kind)
      }
      onProgress(result())
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, requests) }, worker))
  return result()
}

const increment = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1)

export const summary = ({ latencies, errors, elapsed }: LoadResult): LoadSummary => {
  const sorted = latencies.toSorted((one, other) => one - other)
  const failed = [...errors.values()].reduce((sum, count) => sum + count, 0)
  return {
    done: sorted.length + failed,
    failed,
    perSecond: elapsed > 0 ? (sorted.length / elapsed) * 1000 : 0,
    mean: sorted.length === 0 ? undefined : sorted.reduce((sum, value) => sum + value, 0) / sorted.length,
    p50: percentile(sorted, 0.5),
    p95: percentile(sorted, 0.95),
    p99: percentile(sorted, 0.99),
  }
}
