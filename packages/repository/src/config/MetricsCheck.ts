/** Validates the `model_metrics` of a configuration. Part of ConfigCheck.ts. */
import * as ConfiguredMetrics from "@nereid/core/internal/metrics/ConfiguredMetrics"
import type { ModelConfig, ModelMetrics_MetricControl } from "@nereid/protocol/model_config"

export const problem = (config: ModelConfig): string | undefined => {
  for (const control of config.modelMetrics?.metricControl ?? []) {
    const found = controlProblem(control)
    if (found !== undefined) return found
  }
  return bucketsProblem(config)
}

const controlProblem = ({ metricIdentifier, metricOptions }: ModelMetrics_MetricControl): string | undefined => {
  if (metricIdentifier === undefined) return "metric control must specify 'metric_identifier'"
  if (metricIdentifier.family === "") return "metric identifier must specify non-empty 'family'"
  if (metricOptions.case !== "histogramOptions") return "metric control must specify 'histogram_options'"
  return metricOptions.value.buckets.length === 0 ? "histogram options must specify non-empty 'buckets'" : undefined
}

/** Triton has no such check: buckets without an order end its process. */
const bucketsProblem = (config: ModelConfig): string | undefined => {
  const buckets = ConfiguredMetrics.buckets(config) ?? []
  if (buckets.every((end, index) => Number.isFinite(end) && end > (buckets[index - 1] ?? -Infinity))) return undefined
  return `buckets of '${ConfiguredMetrics.firstResponse}' must be ascending numbers for ${config.name}, got [${buckets.join(", ")}]`
}
