/** Metrics of a script, as `pb_utils.MetricFamily` makes those of a model in Python. */
import { type Context, Effect, type Scope } from "effect"
import { type InstanceContext, Metrics } from "@nereid/core"
import type { LabelValues } from "@nereid/core/internal/metrics/MetricFamily"

/**
 * Declares metrics that /metrics shows with the name and version of the model. The names, options and limits are those
 * of `Metrics` for models in code. A metric exists until the last instance of the model has ended.
 * @throws TypeError if Prometheus does not allow a name, or if there may be too many series
 */
export interface ScriptMetrics {
  /** A sum that only grows. */
  readonly counter: <const L extends LabelValues = {}>(
    name: string,
    options: Metrics.MetricOptions<L>,
  ) => Metrics.Counter<L>
  /** A value that may change in both directions. */
  readonly gauge: <const L extends LabelValues = {}>(
    name: string,
    options: Metrics.MetricOptions<L>,
  ) => Metrics.Gauge<L>
  /** Counts of observed values by bucket. */
  readonly histogram: <const L extends LabelValues = {}>(
    name: string,
    options: Metrics.HistogramOptions<L>,
  ) => Metrics.Histogram<L>
}

/** Declares metrics of the instance of this context, until its scope closes. */
export const make = (context: Context.Context<InstanceContext | Scope.Scope>): ScriptMetrics => {
  const declare = Effect.runSyncWith(context)
  return {
    counter: (name, options) => declare(Metrics.counter(name, options)),
    gauge: (name, options) => declare(Metrics.gauge(name, options)),
    histogram: (name, options) => declare(Metrics.histogram(name, options)),
  }
}
