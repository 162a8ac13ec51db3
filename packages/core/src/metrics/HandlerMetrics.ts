/**
 * Metrics of handlers: counters, gauges and histograms of a model, declared where the handler is built. The server's
 * /metrics includes them, with the model's name and version as labels.
 */
import { Effect, Metric, type Scope } from "effect"
import { InstanceContext } from "../instance/InstanceContext.ts"
import { check, type FamilySpec, type LabelValues } from "./MetricFamily.ts"
import { MetricSink } from "./MetricSink.ts"

export type { LabelValues } from "./MetricFamily.ts"

/** The label values of an update. */
export type Labels<L extends LabelValues> = {
  readonly [K in keyof L]: L[K] extends ReadonlyArray<infer V extends string> ? V : string
}

/** The optional last argument: absent for a metric without labels. */
type LabelArguments<L extends LabelValues> = keyof L extends never ? readonly [] : readonly [labels: Labels<L>]

/** A sum that only grows. */
export interface Counter<L extends LabelValues> {
  /** @throws RangeError if the count is negative */
  readonly add: (count: number, ...labels: LabelArguments<L>) => void
}

/** A value that may change in both directions. */
export interface Gauge<L extends LabelValues> {
  readonly set: (value: number, ...labels: LabelArguments<L>) => void
}

/** Counts of observed values by bucket. */
export interface Histogram<L extends LabelValues> {
  readonly observe: (value: number, ...labels: LabelArguments<L>) => void
}

/** Options of a counter or gauge. */
export interface MetricOptions<L extends LabelValues> {
  /** One line of help text in /metrics; the same in all models with a metric of this name. */
  readonly description: string
  /**
   * Names of labels, each with a list of the values that there are, or the number of different ones that there may be:
   * any further one is counted as `other`. Lists make all their series at once, at 0. At most 1000 series. Default
   * none.
   */
  readonly labels?: L
}

/** Options of a histogram. */
export interface HistogramOptions<L extends LabelValues> extends MetricOptions<L> {
  /** Upper ends of the buckets, ascending; one for all that is larger is added. */
  readonly boundaries: ReadonlyArray<number>
}

/**
 * A metric in the scope in which a handler is built: its series are removed when the last instance of the model has
 * gone.
 */
export type Declared<A> = Effect.Effect<A, never, InstanceContext | Scope.Scope>

/**
 * Declares a counter, whose value only increases:
 *
 * ```ts
 * Model.each(Translate, Effect.gen(function* () {
 *   const words = yield* Metrics.counter("translated_words", {
 *     description: "Words that were translated",
 *     labels: { language: ["de", "en", "fr"] },
 *   })
 *   return ({ TEXT }) => {
 *     words.add(TEXT.split(" ").length, { language: "en" })
 *     ...
 * ```
 * @throws TypeError if Prometheus does not allow a name, or if there may be too many series; also for gauges and
 * histograms
 */
export const counter = <const L extends LabelValues = {}>(
  name: string,
  options: MetricOptions<L>,
): Declared<Counter<L>> =>
  Effect.map(declared("counter", name, options, []), (update) => ({
    add: (count, ...labels) => {
      if (!(count >= 0)) throw new RangeError(`counter '${name}' must be added at least 0, got ${count}`)
      update(count, labels)
    },
  }))

/** Declares a gauge, whose value can increase and decrease. */
export const gauge = <const L extends LabelValues = {}>(name: string, options: MetricOptions<L>): Declared<Gauge<L>> =>
  Effect.map(declared("gauge", name, options, []), (update) => ({
    set: (value, ...labels) => update(value, labels),
  }))

/** How values are distributed over buckets. */
export const histogram = <const L extends LabelValues = {}>(
  name: string,
  options: HistogramOptions<L>,
): Declared<Histogram<L>> =>
  Effect.map(declared("histogram", name, options, options.boundaries), (update) => ({
    observe: (value, ...labels) => update(value, labels),
  }))

type Update = (value: number, labels: ReadonlyArray<object>) => void

const declared = <L extends LabelValues>(
  kind: FamilySpec["kind"],
  name: string,
  { description, labels }: MetricOptions<L>,
  boundaries: ReadonlyArray<number>,
): Declared<Update> => {
  const spec: FamilySpec = { kind, name, description, labels: labels ?? {}, boundaries }
  check(spec)
  return Effect.gen(function* () {
    const declare = yield* MetricSink
    const instance = yield* InstanceContext
    const registry = yield* Metric.MetricRegistry
    const series = yield* Effect.acquireRelease(
      Effect.sync(() => declare(spec, instance, registry)),
      ({ release }) => Effect.sync(release),
    )
    const names = Object.keys(spec.labels)
    return (value, [given = {}]) => {
      if (!Number.isFinite(value)) throw new RangeError(`metric '${name}' takes finite numbers, got ${value}`)
      series.update(
        names.map((label) => String(Reflect.get(given, label))),
        value,
      )
    }
  })
}
