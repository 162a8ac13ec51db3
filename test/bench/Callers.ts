/** A closed-loop load: each caller sends its next request after the response. Measures the client itself. */
import { createHistogram } from "node:perf_hooks"
import type { Measured } from "./Measured.ts"

export const run = async (concurrency: number, seconds: number, call: () => Promise<void>): Promise<Measured> => {
  const latencies = createHistogram()
  const errors: Array<string> = []
  let requests = 0
  const started = performance.now()
  const deadline = started + seconds * 1000
  const caller = async () => {
    for (;;) {
      const sentAt = performance.now()
      if (sentAt >= deadline) return
      try {
        await call()
        requests += 1
      } catch (error) {
        // A call that fails immediately would fail forever.
        errors.push(String(error))
        return
      }
      latencies.record(Math.max(1, Math.round((performance.now() - sentAt) * 1e6)))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
  return {
    requests,
    perSecond: (requests / (performance.now() - started)) * 1000,
    p50: latencies.percentile(50) / 1e6,
    p99: latencies.percentile(99) / 1e6,
    p999: latencies.percentile(99.9) / 1e6,
    errors,
  }
}
