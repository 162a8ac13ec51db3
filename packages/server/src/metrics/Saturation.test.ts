/** Saturation on a virtual clock, and of a server under real load. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Model, Tensor } from "@nereid/core"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import * as PrometheusMetrics from "./PrometheusMetrics.fixture.ts"
import { parse } from "./PrometheusText.fixture.ts"
import { ServerSaturation, windowMillis } from "./Saturation.ts"
import * as Server from "../Server.ts"

const spec = { inputs: { X: Tensor.scalar("INT32") }, outputs: { X: Tensor.scalar("INT32") } } as const

/** A batch takes a second, however many rows it has. */
class Fixed extends Model.Service<Fixed>()("fixed", { ...spec, maxBatchSize: 4 }) {}

/** A request takes a second. */
class Single extends Model.Service<Single>()("single", { ...spec, batching: { maxQueueSize: 2 } }) {}

/** A batch waits half a second for more rows. */
class Delayed extends Model.Service<Delayed>()("delayed", {
  ...spec,
  maxBatchSize: 4,
  batching: { maxQueueDelay: "500 millis" },
}) {}

const second = Effect.sleep("1 second")

const models = Layer.mergeAll(
  Model.batch(Fixed, ({ X }) => Effect.as(second, { X })),
  Model.each(Single, ({ X }) => Effect.as(second, { X })),
  Model.batch(Delayed, ({ X }) => ({ X })),
)

const observe = Effect.fnUntraced(function* (options: PrometheusMetrics.MetricsOptions = {}) {
  const context = yield* Layer.build(models)
  const fixed = yield* Effect.provideContext(Fixed, context)
  const single = yield* Effect.provideContext(Single, context)
  const delayed = yield* Effect.provideContext(Delayed, context)
  const store = ModelStore.of([fixed.model, single.model, delayed.model])
  const memory = { used: 0, limit: 1000 }
  const { text } = yield* PrometheusMetrics.make(store, { cpu: false, ...options }, memory)
  const saturation = (model: string) =>
    parse(text())
      .get("nereid_model_saturation")
      ?.samples.find(({ labels }) => labels["model"] === model)?.value ?? NaN
  const parts = () => {
    const families = parse(text())
    const named = families.get("nereid_saturation_part")?.samples.map(({ labels, value }) => [labels["part"], value])
    return { ...Object.fromEntries(named ?? []), server: families.get("nereid_saturation")?.samples[0]?.value }
  }
  return { fixed, single, delayed, memory, saturation, parts, text }
})

const start = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

describe("the saturation of a model", () => {
  it.effect("is 0 while it is idle, and the share of the time in which its instances are busy", () =>
    Effect.gen(function* () {
      const { single, saturation } = yield* observe()
      expect(saturation("single")).toBe(0)
      yield* TestClock.adjust("7 seconds")
      yield* start(single.infer({ X: 1 }))
      yield* TestClock.adjust("3 seconds")
      expect(saturation("single")).toBe(0.1)
    }),
  )

  it.effect("is about the last 10 seconds, also for several scrapers, or since the last scrape before them", () =>
    Effect.gen(function* () {
      const { single, saturation } = yield* observe()
      yield* start(single.infer({ X: 1 }))
      for (let scrape = 0; scrape < 10; scrape++) {
        yield* TestClock.adjust("500 millis")
        saturation("single")
      }
      expect(saturation("single")).toBe(0.2)
      yield* TestClock.adjust("9 seconds")
      expect(saturation("single")).toBe(0)
      yield* start(single.infer({ X: 1 }))
      yield* TestClock.adjust("40 seconds")
      expect(saturation("single")).toBeCloseTo(1 / 40, 3)
    }),
  )

  it.effect("counts batches that are not full as the time that their rows would take in full ones", () =>
    Effect.gen(function* () {
      const { fixed, saturation } = yield* observe()
      // A batch of four takes as long as one of one: a quarter of the capacity would do.
      yield* start(fixed.infer({ X: 1 }))
      yield* TestClock.adjust("1 second")
      yield* Effect.forEach([1, 2, 3, 4], (X) => start(fixed.infer({ X })))
      yield* TestClock.adjust("1 second")
      for (let request = 0; request < 8; request++) {
        yield* start(fixed.infer({ X: 1 }))
        yield* TestClock.adjust("1 second")
      }
      // 13 rows: 3.25 full batches in 10 seconds.
      expect(saturation("fixed")).toBeCloseTo(0.325, 2)
    }),
  )

  it.effect("with batches of one size only is the time of the instances", () =>
    Effect.gen(function* () {
      const { fixed, saturation } = yield* observe()
      for (let request = 0; request < 10; request++) {
        yield* start(fixed.infer({ X: 1 }))
        yield* TestClock.adjust("1 second")
      }
      expect(saturation("fixed")).toBe(1)
    }),
  )

  it.effect("is the time in the queue as a share of its target, if that is more", () =>
    Effect.gen(function* () {
      const { single, saturation } = yield* observe({ queueTarget: "2 seconds" })
      yield* TestClock.adjust("20 seconds")
      expect(saturation("single")).toBe(0)
      yield* start(single.infer({ X: 1 }))
      yield* start(single.infer({ X: 2 }))
      yield* TestClock.adjust("900 millis")
      // The oldest request has waited 0.9 seconds, and is not answered yet.
      expect(saturation("single")).toBe(0.45)
      yield* TestClock.adjust("4100 millis")
      // They have waited 0 and 1 second, and the instance was busy for 2 of 25 seconds.
      expect(saturation("single")).toBe(0.25)
    }),
  )

  it.effect("is 1 after a full queue has refused a request", () =>
    Effect.gen(function* () {
      const { single, saturation } = yield* observe({ queueTarget: "1 hour" })
      yield* TestClock.adjust("1 hour")
      expect(saturation("single")).toBe(0)
      yield* Effect.forEach([1, 2, 3, 4], (X) => start(Effect.ignore(single.infer({ X }))))
      yield* TestClock.adjust("3 seconds")
      expect(saturation("single")).toBe(1)
      yield* TestClock.adjust("10 seconds")
      saturation("single")
      yield* TestClock.adjust("10 seconds")
      expect(saturation("single")).toBe(0)
    }),
  )

  it.effect("does not count the time that requests wait on purpose for a fuller batch", () =>
    Effect.gen(function* () {
      const { delayed, saturation } = yield* observe()
      yield* TestClock.adjust("10 seconds")
      yield* start(delayed.infer({ X: 1 }))
      yield* TestClock.adjust("450 millis")
      expect(saturation("delayed")).toBe(0)
      yield* TestClock.adjust("50 millis")
      expect(saturation("delayed")).toBe(0)
    }),
  )
})

describe("the saturation of the server", () => {
  it.effect("is that of its most saturated part", () =>
    Effect.gen(function* () {
      const { single, memory, parts } = yield* observe()
      expect(parts()).toEqual({ models: 0, main_thread: 0, memory: 0, server: 0 })
      memory.used = 250
      expect(parts()).toMatchObject({ memory: 0.25, server: 0.25 })
      yield* start(single.infer({ X: 1 }))
      yield* TestClock.adjust("2 seconds")
      expect(parts()).toMatchObject({ models: 0.5, memory: 0.25 })
    }),
  )

  it("counts the time in which the main thread works", () => {
    let active = 50
    const saturation = new ServerSaturation({ used: 0, limit: Infinity }, 0, () => active)
    expect(saturation.mainThread(0)).toBe(0)
    active += 400
    expect(saturation.mainThread(1000)).toBe(0.4)
    expect(saturation.mainThread(windowMillis)).toBe(0.04)
    active += 20_000
    expect(saturation.mainThread(2 * windowMillis)).toBe(1)
    expect(saturation.memory()).toBe(0)
  })

  it.effect("needs a target of at least a millisecond", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(PrometheusMetrics.make(new ModelStore(), { queueTarget: 0 }))
      expect(error.message).toBe("metricsOptions.queueTarget: expected at least 1 ms and an end, got 0")
    }),
  )

  it("rises to 1 under more load than a model can take, and the requests of others do not raise that of theirs", async () => {
    const busy = (millis: number) => {
      const end = performance.now() + millis
      while (performance.now() < end);
    }
    const layer = Layer.merge(
      Model.batch(Fixed, ({ X }) => (busy(20), { X })),
      Model.each(Single, ({ X }) => Effect.succeed({ X })),
    )
    const free = { host: "127.0.0.1", port: 0 }
    await using server = await Server.start([Fixed, Single], layer, { http: free, grpc: false, metrics: free })
    const body = JSON.stringify({ inputs: [{ name: "X", datatype: "INT32", shape: [1, 1], data: [1] }] })
    const over = new AbortController()
    // Batches of 4 take 20 ms: requests wait several times the target of 100 ms, also where many wait in sockets.
    const callers = Array.from({ length: 160 }, async () => {
      while (!over.signal.aborted) {
        const response = await fetch(`http://127.0.0.1:${server.http.port}/v2/models/fixed/infer`, {
          method: "POST",
          body,
        })
        await response.arrayBuffer()
      }
    })
    const scrape = async () => {
      const families = parse(await (await fetch(`http://127.0.0.1:${server.metrics.port}/metrics`)).text())
      const of = (name: string, model: string) =>
        families.get(name)?.samples.find(({ labels }) => labels["model"] === model)?.value ?? NaN
      return {
        answered: of("nv_inference_request_success", "fixed"),
        fixed: of("nereid_model_saturation", "fixed"),
        single: of("nereid_model_saturation", "single"),
        server: families.get("nereid_saturation")?.samples[0]?.value ?? NaN,
      }
    }
    let last = await scrape()
    while (last.answered < 480) last = await scrape()
    over.abort()
    await Promise.all(callers)
    expect(last.fixed).toBe(1)
    expect(last.single).toBe(0)
    expect(last.server).toBe(1)
  })
})
