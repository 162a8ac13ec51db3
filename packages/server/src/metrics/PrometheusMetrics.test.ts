/** Prometheus metrics: their values and their text format, scraped over HTTP (C38). */
import { altered } from "../../../../test/fixtures/runningModel.ts"
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { totalmem } from "node:os"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Metric, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Model, Tensor } from "@nereid/core"
import { inferModel } from "../http/HttpInfer.fixture.ts"
import { ModelStatistics } from "@nereid/core/internal/metrics/ModelStatistics"
import * as PrometheusMetrics from "./PrometheusMetrics.fixture.ts"
import { parse, type Sample } from "./PrometheusText.fixture.ts"
import * as Server from "../Server.ts"

/** Waits for the test; one request may wait behind it. */
class Gate extends Model.Service<Gate>()("gate", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  maxBatchSize: 4,
  batching: { maxQueueSize: 1 },
}) {}

const root = 'a "root"\\'

/** Fails on negative numbers. */
class Root extends Model.Service<Root>()(root, {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { X: Tensor.scalar("FP32") },
  version: 3,
}) {}

const RootLive = Model.each(Root, ({ X }) => (X < 0 ? Effect.fail("negative") : Effect.succeed({ X: Math.sqrt(X) })))

const free = { host: "127.0.0.1", port: 0 }

const serve = Effect.gen(function* () {
  const started = yield* Queue.unbounded<void>()
  const open = yield* Deferred.make<void>()
  const GateLive = Model.batch(Gate, ({ X }) =>
    Queue.offer(started, undefined).pipe(Effect.andThen(Deferred.await(open)), Effect.as({ X })),
  )
  const options = { http: free, grpc: false, metrics: free, metricsOptions: { summaryLatencies: true } } as const
  const layer = Server.layer([Gate, Root], options).pipe(Layer.provide(GateLive), Layer.provide(RootLive))
  const { http, metrics } = yield* Effect.provideContext(Server.Server, yield* Layer.build(layer))
  const infer = (model: string, datatype: string, shape: ReadonlyArray<number>, data: ReadonlyArray<number>) =>
    inferModel(
      http ?? free,
      encodeURIComponent(model),
      JSON.stringify({ inputs: [{ name: "X", datatype, shape, data }] }),
    )
  const scrape = Effect.promise(async () => {
    const response = await fetch(`http://127.0.0.1:${metrics?.port}/metrics`)
    return parse(await response.text())
  })
  return { started, open, infer, scrape }
})

const values = (samples: ReadonlyArray<Sample> = [], model: string, label?: string) =>
  Object.fromEntries(
    samples
      .filter(({ labels }) => labels["model"] === model)
      .map(({ name, labels, value }) => [label === undefined ? name : labels[label], value]),
  )

describe("counting", () => {
  it.live("rows against executions, and each reason of failure by a request that meets it", () =>
    Effect.gen(function* () {
      const { started, open, infer, scrape } = yield* serve
      const failures = (model: string) =>
        Effect.map(scrape, (families) => values(families.get("nv_inference_request_failure")?.samples, model, "reason"))
      const none = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 }
      expect(yield* failures("gate")).toEqual(none)
      expect(yield* failures(root)).toEqual(none)

      const three = yield* Effect.forkChild(infer("gate", "INT32", [3, 1], [1, 2, 3]), { startImmediately: true })
      yield* Queue.take(started)
      const pending = Effect.map(
        scrape,
        (families) => values(families.get("nv_inference_pending_request_count")?.samples, "gate", "model")["gate"],
      )
      const waiting = yield* Effect.forkChild(infer("gate", "INT32", [1, 1], [4]), { startImmediately: true })
      yield* pending.pipe(Effect.repeat({ until: (count) => count === 1 }))
      expect((yield* infer("gate", "INT32", [1, 1], [5])).status).toBe(503)
      yield* Fiber.interrupt(waiting)
      yield* failures("gate").pipe(Effect.repeat({ until: ({ CANCELED }) => CANCELED === 1 }))
      expect(yield* pending).toBe(0)
      yield* Deferred.succeed(open, undefined)
      expect((yield* Fiber.join(three)).status).toBe(200)
      expect((yield* infer("gate", "INT32", [2, 1], [6, 7])).status).toBe(200)
      expect((yield* infer("gate", "FP32", [1, 1], [8])).status).toBe(400)
      expect((yield* infer(root, "FP32", [1], [-1])).status).toBe(500)

      expect(yield* failures("gate")).toEqual({ REJECTED: 1, CANCELED: 1, BACKEND: 0, OTHER: 1 })
      expect(yield* failures(root)).toEqual({ ...none, BACKEND: 1 })
      const families = yield* scrape
      const count = (name: string, model: string) => values(families.get(name)?.samples, model)[name]
      expect(count("nv_inference_request_success", "gate")).toBe(2)
      expect(count("nv_inference_count", "gate")).toBe(5)
      expect(count("nv_inference_exec_count", "gate")).toBe(2)
      expect(values(families.get("nv_inference_request_summary_us")?.samples, "gate")).toMatchObject({
        nv_inference_request_summary_us_count: 2,
      })
      const cancelled = values(families.get("nereid_cancelled_rows")?.samples, "gate", "stage")
      expect(cancelled).toEqual({ queue: 1, instance: 0 })
      for (const name of ["request_success", "count", "exec_count", "request_duration_us", "queue_duration_us"]) {
        expect(count(`nv_inference_${name}`, root), name).toBe(0)
      }
    }),
  )
})

/** Sums its inputs, which are filled up: rows to 4, extents to 2 or 8. */
class Padded extends Model.Service<Padded>()("padded", {
  inputs: { A: Tensor.FP32("n"), B: Tensor.FP32("n", 2) },
  outputs: { A: Tensor.FP32("n") },
  maxBatchSize: 8,
  batching: { padTo: [4, 8], ragged: { n: { buckets: [2, 8] } } },
}) {}

describe("the composition of batches", () => {
  const settle = TestClock.adjust(0)
  const zeros = (n: number) => ({
    A: Tensor.make("FP32", [n], new Float32Array(n)),
    B: Tensor.make("FP32", [n, 2], new Float32Array(n * 2)),
  })

  it.effect("rows of those that there may be, and elements that fill them up", () =>
    Effect.gen(function* () {
      const layer = Model.batch(Padded, ({ A }) => ({ A }))
      const { model, infer } = yield* Effect.provideContext(Padded, yield* Layer.build(layer))
      const { text } = yield* PrometheusMetrics.make(ModelStore.of([model]), { cpu: false })
      const series = (name: string, label?: string) => values(parse(text()).get(name)?.samples, "padded", label)
      expect(series("nereid_padding_ratio")).toEqual({ nereid_padding_ratio: 0 })
      // 3 + 6 elements in one row, and 4 + 8 in another: 4 rows of 8 + 16.
      yield* Effect.all([infer(zeros(3)), infer(zeros(4))], { concurrency: 2 })
      expect(series("nereid_batch_elements", "content")).toEqual({ request: 21, padding: 4 * 24 - 21 })
      // 8 rows of 2 + 4 need nothing.
      yield* Effect.replicateEffect(infer(zeros(2)), 8, { concurrency: "unbounded", discard: true })
      expect(series("nereid_batch_elements", "content")).toEqual({ request: 21 + 8 * 6, padding: 4 * 24 - 21 })
      expect(series("nereid_padding_ratio")).toEqual({ nereid_padding_ratio: 75 / (75 + 21 + 48) })
      expect(series("nereid_batch_fill_ratio", "le")).toMatchObject({
        "0.1": 0,
        "0.25": 1,
        "0.5": 1,
        "0.75": 1,
        "0.9": 1,
        "1": 2,
        "+Inf": 2,
      })
      expect(series("nereid_batch_fill_ratio")).toMatchObject({
        nereid_batch_fill_ratio_sum: 1.25,
        nereid_batch_fill_ratio_count: 2,
      })
    }),
  )

  it.effect("rows that were cancelled on an instance; no padding metrics without padding", () =>
    Effect.gen(function* () {
      const layer = Model.batch(Gate, () => Effect.never)
      const { model, inferBatch } = yield* Effect.provideContext(Gate, yield* Layer.build(layer))
      const { text } = yield* PrometheusMetrics.make(ModelStore.of([model]), { cpu: false })
      const X = Tensor.make("INT32", [3, 1], new Int32Array(3))
      const running = yield* Effect.forkChild(inferBatch({ X }), { startImmediately: true })
      yield* settle
      const waiting = yield* Effect.forkChild(inferBatch({ X }), { startImmediately: true })
      yield* Fiber.interruptAll([waiting, running])
      const families = parse(text())
      const cancelled = values(families.get("nereid_cancelled_rows")?.samples, "gate", "stage")
      expect(cancelled).toEqual({ queue: 3, instance: 3 })
      expect([...families.keys()].filter((name) => /padding|elements/.test(name))).toEqual([])
      expect(families.get("nereid_batch_fill_ratio")?.type).toBe("histogram")
    }),
  )
})

/** The samples of the model's families, with what its requests took in milliseconds. */
const observing = Effect.fnUntraced(function* (options: PrometheusMetrics.MetricsOptions) {
  const { model } = yield* Effect.provideContext(Root, yield* Layer.build(RootLive))
  const { text } = yield* PrometheusMetrics.make(ModelStore.of([model]), { cpu: false, ...options })
  const took = (total: number) =>
    model.description.statistics.succeeded(total * 1e6, total * 1e5, {
      input: total * 1e4,
      infer: total * 8e5,
      output: -1,
    })
  return { took, families: () => parse(text()), statistics: model.description.statistics }
})

const summaries = ["request", "queue", "compute_input", "compute_infer", "compute_output"].map(
  (part) => `nv_inference_${part}_summary_us`,
)

describe("summaries", () => {
  it.effect("are off by default, and then observe nothing", () =>
    Effect.gen(function* () {
      const { families, statistics } = yield* observing({})
      expect([...families().keys()].filter((name) => name.includes("summary"))).toEqual([])
      expect(statistics.observers.size).toBe(0)
    }),
  )

  it.effect("of the parts of every request of the last minute; sum and count of all", () =>
    Effect.gen(function* () {
      const { took, families } = yield* observing({ summaryLatencies: true })
      for (const milliseconds of [10, 20, 30, 40, 1000]) took(milliseconds)
      const first = families()
      const expected = { "0.5": 30_000, "0.9": 1e6, "0.95": 1e6, "0.99": 1e6, "0.999": 1e6 }
      for (const [name, part] of summaries.map((name, index) => [name, [1, 0.1, 0.01, 0.8, 0][index] ?? 0] as const)) {
        const { type, samples } = first.get(name) ?? { type: "", samples: [] }
        expect(type, name).toBe("summary")
        const quantiles = values(
          samples.filter((sample) => sample.name === name),
          root,
          "quantile",
        )
        expect(Object.keys(quantiles).toSorted()).toEqual(Object.keys(expected))
        for (const [quantile, value] of Object.entries(expected)) {
          expect(Math.abs((quantiles[quantile] ?? Infinity) - value * part)).toBeLessThanOrEqual(value * part * 0.0101)
        }
        const whole = Object.fromEntries(samples.slice(-2).map(({ name, value }) => [name, value]))
        expect(whole).toEqual({ [`${name}_sum`]: 1_100_000 * part, [`${name}_count`]: 5 })
      }
      yield* TestClock.adjust("1 minute")
      const later = families().get("nv_inference_request_summary_us")?.samples
      expect(later?.map(({ value }) => value)).toEqual([...Object.keys(expected).map(() => Number.NaN), 1_100_000, 5])
    }),
  )

  it.effect("of the configured quantiles, in order", () =>
    Effect.gen(function* () {
      const { took, families } = yield* observing({ summaryLatencies: true, summaryQuantiles: [1, 0.25, 1, 0] })
      for (const milliseconds of [1, 2, 3, 4]) took(milliseconds)
      const samples = families().get("nv_inference_request_summary_us")?.samples.slice(0, -2)
      expect(samples?.map(({ labels }) => labels["quantile"])).toEqual(["0", "0.25", "1"])
    }),
  )

  it.effect("stop observing when the server stops", () =>
    Effect.gen(function* () {
      const { model } = yield* Effect.provideContext(Root, yield* Layer.build(RootLive))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* PrometheusMetrics.make(ModelStore.of([model]), { summaryLatencies: true })
          expect(model.description.statistics.observers.size).toBe(1)
        }),
      )
      expect(model.description.statistics.observers.size).toBe(0)
    }),
  )
})

/** Model with two responses, each this many milliseconds and a fraction after the previous one; none for 0. */
class Slow extends Model.Service<Slow>()("slow", {
  inputs: { MILLIS: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
}) {}

const SlowLive = Model.stream(Slow, ({ MILLIS }) =>
  Stream.range(1, MILLIS === 0 ? 0 : 2).pipe(
    Stream.mapEffect((N) => Effect.delay(Effect.succeed({ N }), MILLIS + 0.4)),
  ),
)

it.effect("the time to the first response of decoupled models, as a histogram if configured", () =>
  Effect.gen(function* () {
    const name = "nv_inference_first_response_histogram_ms"
    const slow = yield* Slow
    const models = [slow.model, (yield* Root).model]
    const off = yield* PrometheusMetrics.make(ModelStore.of(models))
    expect(off.text()).not.toContain(name)
    const { text } = yield* PrometheusMetrics.make(ModelStore.of(models), { histogramLatencies: true })
    const samples = () => parse(text()).get(name)?.samples ?? []
    const empty = samples()
    expect(empty.every(({ labels, value }) => labels["model"] === "slow" && value === 0)).toBe(true)
    const pending = yield* Effect.forkChild(
      Effect.forEach([50, 100, 0, 300, 6000], (MILLIS) => Stream.runDrain(slow.stream({ MILLIS }))),
      { startImmediately: true },
    )
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(pending)
    expect(samples().map(({ name, labels, value }) => [name, labels["le"], value])).toEqual([
      [`${name}_bucket`, "100", 2],
      [`${name}_bucket`, "500", 3],
      [`${name}_bucket`, "2000", 3],
      [`${name}_bucket`, "5000", 3],
      [`${name}_bucket`, "+Inf", 4],
      [`${name}_sum`, undefined, 6450],
      [`${name}_count`, undefined, 4],
    ])
  }).pipe(Effect.provide(Layer.merge(SlowLive, RootLive))),
)

describe("options", () => {
  it.effect("counterLatencies: false leaves the summed durations out, and no counter else", () =>
    Effect.gen(function* () {
      const on = yield* observing({})
      const off = yield* observing({ counterLatencies: false })
      const left = [...on.families().keys()].filter((name) => !off.families().has(name))
      expect(left).toEqual(summaries.map((name) => name.replace("summary", "duration")))
    }),
  )

  it.effect.each([
    [{ summaryQuantiles: [0.5, 1.5] }, "metricsOptions.summaryQuantiles: expected numbers from 0 to 1, got 1.5"],
    [{ summaryQuantiles: [Number.NaN] }, "metricsOptions.summaryQuantiles: expected numbers from 0 to 1, got NaN"],
    [{ interval: 0 }, "metricsOptions.interval: expected at least 1 ms and an end, got 0"],
    [{ interval: Infinity }, "metricsOptions.interval: expected at least 1 ms and an end, got Infinity"],
  ] as const)("%o are refused", ([options, message]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(PrometheusMetrics.make(new ModelStore(), options))
      expect(error).toMatchObject({ _tag: "ServeError", message })
    }),
  )
})

describe("the machine", () => {
  it.live("processors and memory, looked at in intervals", () =>
    Effect.gen(function* () {
      const { text } = yield* PrometheusMetrics.make(new ModelStore(), { interval: "1 millis" })
      const first = text()
      const families = parse(first)
      const value = (name: string) => families.get(name)?.samples[0]?.value ?? Number.NaN
      const machine = [...families].filter(([name]) => name.startsWith("nv_cpu_"))
      expect(machine.map(([, { type }]) => type)).toEqual(["gauge", "gauge", "gauge"])
      expect(value("nv_cpu_utilization")).toBeGreaterThanOrEqual(0)
      expect(value("nv_cpu_utilization")).toBeLessThanOrEqual(1)
      expect(value("nv_cpu_memory_total_bytes")).toBe(totalmem())
      expect(value("nv_cpu_memory_used_bytes")).toBeGreaterThan(0)
      expect(value("nv_cpu_memory_used_bytes")).toBeLessThan(totalmem())
      yield* Effect.sync(text).pipe(Effect.delay("1 millis"), Effect.repeat({ until: (later) => later !== first }))
    }),
  )

  it.effect("is left out where it is off", () =>
    Effect.gen(function* () {
      expect((yield* PrometheusMetrics.make(new ModelStore(), { cpu: false })).text()).not.toContain("nv_cpu_")
    }),
  )
})

it.effect("includes metrics of the program", () =>
  Effect.gen(function* () {
    const { families } = yield* observing({})
    const tokens = Metric.counter("tokens_total", { description: "Tokens", attributes: { kind: "prompt" } })
    yield* Metric.update(tokens, 3)
    expect(families().get("tokens_total")).toEqual({
      type: "counter",
      help: "Tokens",
      samples: [{ name: "tokens_total", labels: { kind: "prompt" }, value: 3 }],
    })
    expect(families().has("nv_inference_count")).toBe(true)
  }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
)

it.effect("servers of one process report only their models, each with its options", () =>
  Effect.gen(function* () {
    const root = yield* observing({ summaryLatencies: true })
    const slow = (yield* Slow).model
    const other = yield* PrometheusMetrics.make(ModelStore.of([slow]), { cpu: false, histogramLatencies: true })
    root.took(5)
    slow.description.statistics.firstResponse(1e6)
    const models = (families: ReturnType<typeof parse>) => [
      ...new Set(
        [...families.values()].flatMap(({ samples }) => samples.flatMap(({ labels }) => labels["model"] ?? [])),
      ),
    ]
    expect([models(root.families()), models(parse(other.text()))]).toEqual([['a "root"\\'], ["slow"]])
    expect(other.text()).not.toContain("summary")
    expect([...root.families().keys()].filter((name) => name.includes("histogram"))).toEqual([])
    // The same model, on a second server that begins later.
    const repeated = parse(
      (yield* PrometheusMetrics.make(ModelStore.of([slow]), { cpu: false, histogramLatencies: true })).text(),
    )
    const name = "nv_inference_first_response_histogram_ms"
    expect(values(repeated.get(name)?.samples, "slow")[`${name}_count`]).toBe(0)
    expect(values(parse(other.text()).get(name)?.samples, "slow")[`${name}_count`]).toBe(1)
  }).pipe(Effect.provide(SlowLive)),
)

it.effect("reports a model from load to unload, and a replacement from zero", () =>
  Effect.gen(function* () {
    const { model } = yield* Slow
    const registry = new ModelStore()
    const metrics = yield* PrometheusMetrics.make(registry)
    const successes = Effect.gen(function* () {
      // The registration is a fiber's.
      yield* TestClock.adjust(0)
      return parse(metrics.text())
        .get("nv_inference_request_success")
        ?.samples.map(({ value }) => value)
    })
    model.description.statistics.success.add(1)
    expect(yield* successes).toBeUndefined()
    registry.serve("slow", [ModelVersion.ready(model)])
    expect(yield* successes).toEqual([1])
    registry.serve("slow", [ModelVersion.ready(altered(model, { description: { statistics: new ModelStatistics() } }))])
    expect(yield* successes).toEqual([0])
    registry.serve("slow", [])
    expect(yield* successes).toBeUndefined()
  }).pipe(Effect.provide(SlowLive)),
)
