/**
 * Stores the metrics that a model's code declares in Effect's metric registry, which /metrics shows, by the model's
 * name and version. They exist as long as one of its instances. A worker thread sends its metrics to the main thread.
 */
import { Context, Metric } from "effect"
import type { BuiltInstance } from "../instance/InstanceContext.ts"
import { type FamilySpec, initialSeries, LabelBounds } from "./MetricFamily.ts"

/** The series of one metric of one model. */
export interface FamilySeries {
  /**
   * Records a value; labels are in the order of the declaration. A counter adds it, a gauge takes it, and a histogram
   * observes it.
   */
  readonly update: (labels: ReadonlyArray<string>, value: number) => void
  /** Releases the metric; no instance that got it here uses it any more. */
  readonly release: () => void
}

/** @throws TypeError if another metric has the name */
export type Declare = (
  spec: FamilySpec,
  instance: Pick<BuiltInstance, "model" | "version">,
  registry: Metric.MetricRegistry,
) => FamilySeries

/** Default: the registry itself. */
export const MetricSink = Context.Reference<Declare>("@nereid/core/internal/metrics/MetricSink", {
  defaultValue: () => declare,
})

/** A family of one model, which all of its instances share. */
interface RegisteredFamily {
  readonly spec: string
  readonly bounds: LabelBounds
  readonly series: Map<string, Metric.Metric<number, unknown>>
  users: number
}

const kept = new WeakMap<Metric.MetricRegistry, Map<string, RegisteredFamily>>()

export const declare: Declare = (spec, { model, version }, registry) => {
  const families = kept.get(registry) ?? new Map<string, RegisteredFamily>()
  kept.set(registry, families)
  const key = JSON.stringify([spec.name, model, version])
  const text = JSON.stringify(spec)
  const family = families.get(key) ?? { spec: text, bounds: new LabelBounds(spec), series: new Map(), users: 0 }
  if (family.spec !== text || isOther(spec, registry)) {
    throw new TypeError(`Metric ${JSON.stringify(spec.name)} of model '${model}' differs from its earlier declaration.`)
  }
  families.set(key, family)
  family.users += 1
  const context = Context.make(Metric.MetricRegistry, registry)
  const names = Object.keys(spec.labels)
  const seriesOf = (labels: ReadonlyArray<string>) => {
    const at = labels.join("\0")
    let metric = family.series.get(at)
    if (metric === undefined) {
      const labelled = names.map((name, index) => [name, labels[index] ?? ""] as const)
      // In the order of the alphabet, which is the order they are written in.
      const all = [...labelled, ["model", model] as const, ["version", version] as const]
      metric = seriesMetric(spec, Object.fromEntries(all.toSorted(([one], [next]) => (one < next ? -1 : 1))))
      family.series.set(at, metric)
      // Reading it makes its series, which is there from the start.
      metric.valueUnsafe(context)
    }
    return metric
  }
  for (const labels of initialSeries(spec)) seriesOf(labels)
  let isReleased = false
  return {
    update: (labels, value) => {
      if (!isReleased) seriesOf(family.bounds.values(labels)).updateUnsafe(value, context)
    },
    release: () => {
      if (isReleased) return
      isReleased = true
      family.users -= 1
      if (family.users > 0) return
      families.delete(key)
      for (const metric of family.series.values()) Metric.removeUnsafe(metric, context)
    },
  }
}

/** Whether another metric of this name exists; all series of a family have one kind and one description. */
const isOther = ({ name, kind, description }: FamilySpec, registry: Metric.MetricRegistry): boolean =>
  [...registry.values()].some(
    ({ id, type, description: other }) => id === name && (type.toLowerCase() !== kind || other !== description),
  )

/** The metric of one series of a family. */
export const seriesMetric = (
  { kind, name, description, boundaries }: Omit<FamilySpec, "labels">,
  attributes: Readonly<Record<string, string>>,
): Metric.Metric<number, unknown> => {
  switch (kind) {
    case "counter":
      return Metric.counter(name, { description, attributes, incremental: true })
    case "gauge":
      return Metric.gauge(name, { description, attributes })
    case "histogram":
      return Metric.histogram(name, { description, attributes, boundaries })
  }
}
