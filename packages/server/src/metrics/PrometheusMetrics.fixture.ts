/** The metrics of PrometheusMetrics.ts as a scrape has them. */
import { Effect } from "effect"
import { formatUnsafe } from "effect/observability/PrometheusMetrics"
import * as PrometheusMetrics from "./PrometheusMetrics.ts"

export type { MetricsOptions } from "./PrometheusMetrics.ts"

export const make = (...given: Parameters<typeof PrometheusMetrics.make>) =>
  Effect.map(PrometheusMetrics.make(...given), ({ current }) => ({ text: () => formatUnsafe(current()) }))
