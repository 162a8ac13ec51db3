/**
 * Forwards the metrics of a handler from its thread to the main thread, which serves /metrics. Updates of one turn of
 * the thread's event loop are sent together.
 */
import { check } from "@nereid/core/internal/metrics/MetricFamily"
import type { Declare } from "@nereid/core/internal/metrics/MetricSink"
import type { FromThread, MetricUpdate } from "./ThreadProtocol.ts"

export interface ForwardedMetrics {
  readonly declare: Declare
  /** Sends what has not been sent yet: an answer is behind the updates of its handler. */
  readonly flush: () => void
}

export const make = (post: (message: FromThread) => void): ForwardedMetrics => {
  let next = 0
  let updates: Array<MetricUpdate> = []
  const flush = () => {
    if (updates.length === 0) return
    const sent = updates
    updates = []
    post({ _tag: "Measured", updates: sent })
  }
  const declare: Declare = (spec) => {
    check(spec)
    const metric = next++
    post({ _tag: "Metric", metric, spec })
    return {
      update: (labels, value) => {
        if (updates.length === 0) queueMicrotask(flush)
        updates.push({ metric, labels, value })
      },
      // Released with the thread.
      release: () => {},
    }
  }
  return { declare, flush }
}
