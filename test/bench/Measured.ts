/** Results of one round, as data that can be sent between processes. */
import type { Measured as Round } from "@nereid/bench/internal/load/Round"

export interface Measured {
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly p999: number
  /** The kinds of what went wrong. */
  readonly errors: ReadonlyArray<string>
}

export const of = ({ requests, perSecond, latencies, problems }: Round): Measured => ({
  requests,
  perSecond,
  p50: latencies.percentile(50),
  p99: latencies.percentile(99),
  p999: latencies.percentile(99.9),
  errors: [...problems.messages.keys()],
})
