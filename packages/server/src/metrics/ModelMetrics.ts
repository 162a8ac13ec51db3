/**
 * Metrics of one model version, under the names of Triton's metrics. Counters and gauges are read from the model's
 * statistics at each scrape. Optional summaries and a histogram observe its requests. ModelStatistics.ts of core
 * defines the counts.
 */
import { constVoid } from "effect/Function"
import { type Context, Effect, Metric, Schedule, type Scope } from "effect"
import * as ConfiguredMetrics from "@nereid/core/internal/metrics/ConfiguredMetrics"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { FailureReason, Observer, ModelStatistics } from "@nereid/core/internal/metrics/ModelStatistics"
import type { ModelConfig } from "@nereid/protocol/model_config"
import { rotationSeconds, SlidingQuantiles } from "./SlidingQuantiles.ts"

export interface ModelMetricsOptions {
  readonly counterLatencies: boolean
  readonly histogramLatencies: boolean
  /** Quantiles of the summaries; undefined for no summaries. */
  readonly quantiles: ReadonlyArray<number> | undefined
}

/** Source of a model, from which some of its labels come. */
interface MetricsOrigin {
  /** Configuration of a model of a repository. */
  readonly configuration: ModelConfig | undefined
  /** Repository that the name of the model is unique in; undefined if it is unique in the server. */
  readonly namespace: string | undefined
}

interface Family {
  readonly name: string
  readonly description: string
  readonly value: (model: RunningModel) => number
}

const counters: ReadonlyArray<Family> = [
  {
    name: "nv_inference_request_success",
    description: "Successful inference requests",
    value: ({ description: { statistics } }) => statistics.success.count,
  },
  {
    name: "nv_inference_count",
    description: "Inferred rows, excluding rows from the response cache",
    value: ({ description: { statistics } }) => statistics.inferenceCount - statistics.cachedCount,
  },
  {
    name: "nv_inference_exec_count",
    description: "Executed batches",
    value: ({ description: { statistics } }) => statistics.executionCount,
  },
]

/** Counters only for models with a response cache. */
const cacheCounters: ReadonlyArray<Family> = [
  {
    name: "nv_cache_num_hits_per_model",
    description: "Response cache hits",
    value: ({ description: { statistics } }) => statistics.cacheHit.count,
  },
  {
    name: "nv_cache_num_misses_per_model",
    description: "Response cache misses",
    value: ({ description: { statistics } }) => statistics.cacheMiss.count,
  },
]

const cacheLatencies: ReadonlyArray<Family> = [
  {
    name: "nv_cache_hit_duration_per_model",
    description: "Cumulative time of response cache lookups for hits, in microseconds",
    value: ({ description: { statistics } }) => microseconds(statistics.cacheHit.ns),
  },
  {
    name: "nv_cache_miss_duration_per_model",
    description: "Cumulative time of response cache lookups and insertions for misses, in microseconds",
    value: ({ description: { statistics } }) => microseconds(statistics.cacheMiss.ns),
  },
]

/** Gauges only for models with padded batches. */
const paddingGauges: ReadonlyArray<Family> = [
  {
    name: "nereid_padding_ratio",
    description: "Share of padding in the input elements of all batches, from 0 to 1",
    value: ({
      description: {
        statistics: { elements },
      },
    }) => elements.added / Math.max(1, elements.given + elements.added),
  },
]

/** Gauges only for models with sequences. */
const sequenceGauges: ReadonlyArray<Family> = [
  {
    name: "nereid_sequences_live",
    description: "Sequences that have a slot",
    value: ({ life }) => life.activity().sequences?.live ?? 0,
  },
  {
    name: "nereid_sequences_backlog",
    description: "Sequences that wait for a slot",
    value: ({ life }) => life.activity().sequences?.backlog ?? 0,
  },
  {
    name: "nereid_sequence_age_seconds",
    description: "Age of the oldest sequence that takes further requests, in seconds",
    value: ({ life }) => (life.activity().sequences?.oldestNanos ?? 0) / 1e9,
  },
  {
    name: "nereid_sequence_state_bytes",
    description: "Bytes of the state tensors of all sequences",
    value: ({ life }) => life.activity().sequences?.stateBytes ?? 0,
  },
]

/** Boundaries as shares of the maximum batch size. */
const fillBoundaries = [0.1, 0.25, 0.5, 0.75, 0.9, 1]

const reasons: ReadonlyArray<FailureReason> = ["REJECTED", "CANCELED", "BACKEND", "OTHER"]

const gauges: ReadonlyArray<Family> = [
  {
    name: "nv_inference_pending_request_count",
    description: "Pending requests, accepted but not yet executing",
    value: (model) => model.life.pending(),
  },
  {
    name: "nv_model_load_duration_secs",
    description: "Load time of the model, in seconds",
    value: ({ description: { statistics } }) => statistics.loadSeconds,
  },
]

/** A part of the time of a request, in nanoseconds. */
interface Part {
  readonly name: string
  readonly description: string
  readonly ofAll: (statistics: ModelStatistics) => number
  readonly ofOne: (...request: Parameters<ModelStatistics["succeeded"]>) => number
  /** Duration for a request that the cache answers, if it has that part. */
  readonly ofHit?: (total: number, queued: number) => number
}

const parts: ReadonlyArray<Part> = [
  {
    name: "request",
    description: "Request time from acceptance to response",
    ofAll: ({ success }) => success.ns,
    ofOne: (total) => total,
  },
  {
    name: "queue",
    description: "Request time in the queue",
    ofAll: ({ queue }) => queue.ns,
    ofOne: (_, queued) => queued,
    ofHit: (_, queued) => queued,
  },
  {
    name: "compute_input",
    description: "Request time for reading and preparing inputs",
    ofAll: ({ computeInput }) => computeInput.ns,
    ofOne: (_total, _queued, { input }) => input,
  },
  {
    name: "compute_infer",
    description: "Request time for model execution",
    ofAll: ({ computeInfer }) => computeInfer.ns,
    ofOne: (_total, _queued, { infer }) => infer,
  },
  {
    name: "compute_output",
    description: "Request time for preparing and writing outputs",
    ofAll: ({ computeOutput }) => computeOutput.ns,
    ofOne: (_total, _queued, { output }) => output,
  },
]

/** Registers the metrics in the context's registry until the scope closes. */
export const register = Effect.fnUntraced(function* (
  model: RunningModel,
  origin: MetricsOrigin,
  { counterLatencies, histogramLatencies, quantiles }: ModelMetricsOptions,
  registry: Context.Context<never>,
): Effect.fn.Return<void, never, Scope.Scope> {
  const { configuration } = origin
  const {
    description: { statistics },
  } = model
  const registrations: Array<Metric.Registration> = []
  yield* Effect.addFinalizer(() => Effect.sync(() => registrations.forEach((registration) => registration.remove())))
  const add = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State) =>
    registrations.push(Metric.registerUnsafe(metric, registry, { get, update: constVoid, modify: constVoid }))
  const addCounter = (name: string, description: string, count: () => number, attributes = labels(model, origin)) =>
    add(Metric.counter(name, { description, attributes }), () => ({ count: count(), incremental: true }))

  const countersOfCache = model.description.responseCache
    ? [...cacheCounters, ...(counterLatencies ? cacheLatencies : [])]
    : []
  for (const { name, description, value } of [...counters, ...countersOfCache])
    addCounter(name, description, () => value(model))
  for (const reason of reasons) {
    const count = () => statistics.failures[reason]
    addCounter(
      "nv_inference_request_failure",
      "Failed inference requests, by reason",
      count,
      labels(model, origin, { reason }),
    )
  }
  for (const stage of ["queue", "instance"] as const) {
    const description = "Cancelled rows, by stage: in the queue or on an instance"
    addCounter(
      "nereid_cancelled_rows",
      description,
      () => statistics.cancelledRows[stage],
      labels(model, origin, { stage }),
    )
  }
  for (const [content, key] of pads(model) ? contents : []) {
    const description = "Input elements of batches, by content: from requests or padding"
    addCounter("nereid_batch_elements", description, () => statistics.elements[key], labels(model, origin, { content }))
  }
  for (const { name, description, ofAll } of counterLatencies ? parts : []) {
    const cumulative = `${description}, cumulative, in microseconds`
    addCounter(`nv_inference_${name}_duration_us`, cumulative, () => microseconds(ofAll(statistics)))
  }
  const { sequences } = model.life.activity()
  for (const [reason] of Object.entries(sequences?.ended ?? {})) {
    const count = () => new Map(Object.entries(model.life.activity().sequences?.ended ?? {})).get(reason) ?? 0
    addCounter("nereid_sequences_ended", "Sequences that are over, by reason", count, labels(model, origin, { reason }))
  }
  const gaugesOfModel = [
    ...gauges,
    ...(pads(model) ? paddingGauges : []),
    ...(sequences === undefined ? [] : sequenceGauges),
  ]
  for (const { name, description, value } of gaugesOfModel) {
    add(Metric.gauge(name, { description, attributes: labels(model, origin) }), () => ({ value: value(model) }))
  }
  if (model.description.maxBatchSize > 0) {
    const metric = Metric.histogram("nereid_batch_fill_ratio", {
      description: "Rows of executed batches as a share of the maximum batch size, from 0 to 1",
      attributes: labels(model, origin),
      boundaries: fillBoundaries,
    })
    add(metric, () => fillState(model))
  }
  if (quantiles !== undefined) {
    const summaries = yield* summarize(model)
    for (const { family, description, durations } of summaries) {
      const metric = Metric.summary(family, {
        description: `${description} during the last minute, in microseconds`,
        attributes: labels(model, origin),
        quantiles,
        // Effect only writes it; the observations are ours.
        maxAge: 0,
        maxSize: 0,
      })
      add(metric, () => summaryState(durations, quantiles))
    }
  }
  if (histogramLatencies && model.calls.decoupled) {
    const metric = Metric.histogram(ConfiguredMetrics.firstResponse, {
      description: "Time from acceptance of a request to its first response, in milliseconds",
      attributes: labels(model, origin),
      boundaries: (configuration && ConfiguredMetrics.buckets(configuration)) ?? [100, 500, 2000, 5000],
    })
    // Reading the metric creates its series, so that it exists before the first response.
    metric.valueUnsafe(registry)
    registrations.push({ remove: () => Metric.removeUnsafe(metric, registry) })
    // Whole milliseconds, as in Triton, whose clients parse the sum as an integer.
    yield* observe(statistics, { firstResponse: (total) => metric.updateUnsafe(Math.floor(total / 1e6), registry) })
  }
})

/**
 * Summary of durations, in nanoseconds. Each function returns the duration of one kind of request; other kinds are
 * ignored.
 */
interface Summarized {
  readonly family: string
  readonly description: string
  readonly ofExecuted?: (...request: Parameters<ModelStatistics["succeeded"]>) => number
  readonly ofHit?: (total: number, queued: number, lookup: number) => number
  readonly ofMiss?: (duration: number) => number
}

const ofInference: ReadonlyArray<Summarized> = parts.map(({ name, description, ofOne, ofHit }) => ({
  family: `nv_inference_${name}_summary_us`,
  description,
  ofExecuted: ofOne,
  ...(ofHit === undefined ? {} : { ofHit }),
}))

const ofCache: ReadonlyArray<Summarized> = [
  {
    family: "nv_cache_hit_summary_per_model",
    description: "Time of response cache lookups for hits",
    ofHit: (_total, _queued, lookup) => lookup,
  },
  {
    family: "nv_cache_miss_summary_per_model",
    description: "Time of response cache lookups and insertions for misses",
    ofMiss: (duration) => duration,
  },
]

/** As in Triton, without the whole time of requests. */
const ofCachedModel = [...ofInference.filter(({ family }) => family !== "nv_inference_request_summary_us"), ...ofCache]

/** From now on until the scope closes. */
const summarize = Effect.fnUntraced(function* ({ description: { statistics, responseCache } }: RunningModel) {
  const summaries = (responseCache ? ofCachedModel : ofInference).map((summarized) => {
    const durations = new SlidingQuantiles()
    return { ...summarized, durations, add: (ns: number) => durations.observe(microseconds(ns)) }
  })
  yield* observe(statistics, {
    succeeded: (...request) => {
      for (const { ofExecuted, add } of summaries) if (ofExecuted !== undefined) add(ofExecuted(...request))
    },
    hit: (...hit) => {
      for (const { ofHit, add } of summaries) if (ofHit !== undefined) add(ofHit(...hit))
    },
    missed: (duration) => {
      for (const { ofMiss, add } of summaries) if (ofMiss !== undefined) add(ofMiss(duration))
    },
  })
  yield* Effect.sync(() => summaries.forEach(({ durations }) => durations.rotate())).pipe(
    Effect.delay(`${rotationSeconds} seconds`),
    Effect.repeat(Schedule.forever),
    Effect.forkScoped,
  )
  return summaries
})

const observe = (statistics: ModelStatistics, observer: Observer) =>
  Effect.acquireRelease(
    Effect.sync(() => statistics.observers.add(observer)),
    () => Effect.sync(() => statistics.observers.delete(observer)),
  )

/** Parts of a request are measured separately, so a difference may be fractional or negative. */
const microseconds = (ns: number): number => Math.max(0, Math.floor(ns / 1000))

const summaryState = (durations: SlidingQuantiles, quantiles: ReadonlyArray<number>): Metric.SummaryState => {
  const { count, sum } = durations
  const values = durations.at(quantiles)
  return { quantiles: quantiles.map((quantile, index) => [quantile, values[index]]), count, sum, min: 0, max: 0 }
}

const pads = ({
  description: {
    batching: { padTo, ragged },
  },
}: RunningModel): boolean => padTo.length > 0 || ragged.length > 0

const contents = [
  ["padding", "added"],
  ["request", "given"],
] as const

/** Read from what the statistics have by rows: it costs no batch anything. */
const fillState = ({ description: { maxBatchSize, statistics } }: RunningModel): Metric.HistogramState => {
  let count = 0
  let sum = 0
  let min = Infinity
  let max = 0
  const below = fillBoundaries.map(() => 0)
  for (const [rows, { computeInfer }] of statistics.batches) {
    const ratio = rows / maxBatchSize
    const batches = computeInfer.count
    count += batches
    sum += ratio * batches
    min = Math.min(min, ratio)
    max = Math.max(max, ratio)
    for (const [index, boundary] of fillBoundaries.entries()) {
      if (ratio <= boundary) below[index] = (below[index] ?? 0) + batches
    }
  }
  return { buckets: fillBoundaries.map((boundary, index) => [boundary, below[index] ?? 0]), count, sum, min, max }
}

/** Labels in alphabetical order, in which they are written. */
export const labels = (
  { description: { name, version } }: RunningModel,
  { configuration, namespace }: MetricsOrigin,
  extraLabels: { readonly [name: string]: string } = {},
): Readonly<Record<string, string>> => {
  const tags = {
    ...(configuration && ConfiguredMetrics.tags(configuration)),
    ...(namespace === undefined ? {} : { namespace }),
  }
  return Object.fromEntries(
    Object.entries({ ...tags, model: name, version, ...extraLabels }).toSorted(([one], [other]) =>
      one < other ? -1 : 1,
    ),
  )
}
