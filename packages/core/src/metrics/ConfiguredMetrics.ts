/** The supported metrics settings of a model's configuration. */
import type { ModelConfig, ModelMetrics_MetricControl } from "@nereid/protocol/model_config"

/** The labels that its metric_tags are. */
export const tags = ({ metricTags }: ModelConfig): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(metricTags).filter(([name]) => isLabel(name)))

/** Whether a tag may be a label: some names are no labels, and some are those of the metrics themselves. */
export const isLabel = (name: string): boolean => /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) && !taken.has(name)

const taken: ReadonlySet<string> = new Set(["model", "version", "le", "quantile", "unit", "time_unit"])

/** The histogram whose buckets a model may have otherwise. */
export const firstResponse = "nv_inference_first_response_histogram_ms"

/** Upper bounds of the histogram of the first response, in milliseconds; undefined if unset. */
export const buckets = (config: ModelConfig): ReadonlyArray<number> | undefined =>
  config.modelMetrics?.metricControl.find(isOfFirstResponse)?.metricOptions.value?.buckets

export const isOfFirstResponse = ({ metricIdentifier, metricOptions }: ModelMetrics_MetricControl): boolean =>
  metricIdentifier?.family === firstResponse && metricOptions.case === "histogramOptions"
