/**
 * All metrics for Prometheus: those of the models and the machine, in a separate registry, and every other Effect
 * metric of the program. Metrics that are turned off are neither collected nor written. MetricsServer.ts writes their
 * text.
 */
import { Clock, Context, Duration, Effect, Exit, Metric, Queue, Scope } from "effect"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as CpuMetrics from "./CpuMetrics.ts"
import * as ModelMetrics from "./ModelMetrics.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import type { MemoryBudget } from "../limit/MemoryBudget.ts"
import * as StandardStreams from "../log/StandardStreams.ts"
import { SaturationMetrics } from "./SaturationMetrics.ts"
import { ServeError } from "../error/ServeError.ts"

/** Options of the metrics at `/metrics`. */
export interface MetricsOptions {
  /** Counters of the time in each part of requests. Default true. */
  readonly counterLatencies?: boolean
  /** Histogram of the time to the first response, for decoupled models. Default false. */
  readonly histogramLatencies?: boolean
  /** Summaries of the time in each part of requests, over the last minute. Default false. */
  readonly summaryLatencies?: boolean
  /** Quantiles of the summaries, from 0 to 1. Default 0.5, 0.9, 0.95, 0.99, 0.999. Values are accurate to 1 %. */
  readonly summaryQuantiles?: ReadonlyArray<number>
  /** Time in the queue, beyond `maxQueueDelay`, at which `nereid_saturation` is 1. Default 100 milliseconds. */
  readonly queueTarget?: Duration.Input
  /** Metrics of the machine's processors and memory. Default true. */
  readonly cpu?: boolean
  /** Interval between measurements of processors and memory. Default 2 seconds. */
  readonly interval?: Duration.Input
}

export interface PrometheusMetrics {
  /** Updates the metrics, and returns a context with their registry. */
  readonly current: () => Context.Context<never>
}

export const make = Effect.fnUntraced(function* (
  served: Gateway["models"],
  options: MetricsOptions = {},
  memory: Pick<MemoryBudget, "used" | "limit"> = { used: 0, limit: Infinity },
): Effect.fn.Return<PrometheusMetrics, ServeError, Scope.Scope> {
  const { counterLatencies = true, histogramLatencies = false, summaryLatencies = false, cpu = true } = options
  const { summaryQuantiles = [0.5, 0.9, 0.95, 0.99, 0.999] } = options
  const interval = Duration.fromInputUnsafe(options.interval ?? "2 seconds")
  const wrong = summaryQuantiles.find((quantile) => !(quantile >= 0 && quantile <= 1))
  if (wrong !== undefined) return yield* refused("summaryQuantiles", "numbers from 0 to 1", String(wrong))
  if (!Duration.isFinite(interval) || Duration.toMillis(interval) < 1) {
    return yield* refused("interval", "at least 1 ms and an end", Duration.format(interval))
  }
  const queueTarget = Duration.fromInputUnsafe(options.queueTarget ?? "100 millis")
  if (!Duration.isFinite(queueTarget) || Duration.toMillis(queueTarget) < 1) {
    return yield* refused("queueTarget", "at least 1 ms and an end", Duration.format(queueTarget))
  }
  const programs = yield* Metric.MetricRegistry
  const metrics: Metric.MetricRegistry = new Map()
  const registry = Context.make(Metric.MetricRegistry, metrics)
  const quantiles = summaryLatencies ? [...new Set(summaryQuantiles)].toSorted((a, b) => a - b) : undefined
  const clock = yield* Clock.Clock
  const saturation = new SaturationMetrics(clock, Duration.toMillis(queueTarget), memory, registry)
  const latencies = { counterLatencies, histogramLatencies, quantiles }
  yield* follow(served, (model) => {
    const version = served.versionOf(model)
    const origin = { configuration: version?.configuration?.(), namespace: version?.namespace }
    return Effect.andThen(
      ModelMetrics.register(model, origin, latencies, registry),
      saturation.register(model, ModelMetrics.labels(model, origin)),
    )
  })
  if (cpu) yield* CpuMetrics.register(interval, registry)
  return {
    current: () => {
      const failed = StandardStreams.failedWrites()
      saturation.update()
      if (failed > 0) failedWrites.updateUnsafe(failed, registry)
      // Merges both registries for the formatter: a family in both must have one head.
      const all = new Map([...metrics, ...programs])
      return Context.make(Metric.MetricRegistry, all)
    },
  }
})

const failedWrites = Metric.gauge("nereid_standard_stream_failed_writes", {
  description: "Number of writes to stdout and stderr that failed, because their reader has closed",
})

/** Registers the metrics of current and later models, each until its model is removed. */
const follow = Effect.fnUntraced(function* (
  served: Gateway["models"],
  register: (model: RunningModel) => Effect.Effect<void, never, Scope.Scope>,
) {
  const scope = yield* Scope.Scope
  const registered = new Map<RunningModel, Scope.Closeable>()
  const update = Effect.gen(function* () {
    const current = new Set(served.models)
    // Removed models first, because their replacements have the same labels.
    for (const [model, modelScope] of registered) {
      if (current.has(model)) continue
      registered.delete(model)
      yield* Scope.close(modelScope, Exit.void)
    }
    for (const model of current) {
      if (registered.has(model)) continue
      const modelScope = yield* Scope.fork(scope)
      registered.set(model, modelScope)
      yield* Scope.provide(register(model), modelScope)
    }
  })
  const changes = yield* Queue.sliding<void>(1)
  yield* Effect.acquireRelease(
    Effect.sync(() => served.onChange(() => Queue.offerUnsafe(changes, undefined))),
    (unwatch) => Effect.sync(unwatch),
  )
  yield* update
  yield* Queue.take(changes).pipe(Effect.andThen(update), Effect.forever, Effect.forkScoped)
})

const refused = (option: string, expected: string, got: string) =>
  new ServeError({ message: `metricsOptions.${option}: expected ${expected}, got ${got}` })
