/** Steps of the live view: what real models did in each of them. */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { QueueFull } from "@nereid/core/Errors"
import * as LatencyHistogram from "@nereid/dashboard/internal/live/LatencyHistogram"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { harness, makeGate } from "./LiveView.fixture.ts"

const fields = { X: Tensor.scalar("INT32") }

class Gated extends Model.Service<Gated>()("gated", {
  inputs: fields,
  outputs: fields,
  maxBatchSize: 4,
  batching: { maxQueueSize: 3 },
}) {}

class Cached extends Model.Service<Cached>()("cached", { inputs: fields, outputs: fields, version: 3 }) {}

const CachedLive = Model.each(Cached, ({ X }) => (X < 0 ? Effect.fail("negative") : Effect.succeed({ X })), {
  responseCache: true,
})

const gated = Effect.gen(function* () {
  const gate = yield* makeGate
  const GatedLive = Model.batch(Gated, ({ X }) => Effect.as(gate.wait, { X }), { instances: 2 })
  const live = yield* harness(Layer.mergeAll(GatedLive, CachedLive), Effect.all([Gated, Cached]))
  const [model, cached] = live.models
  const send = (X: number, id = "") => Effect.forkChild(model.infer({ X }, { id }), { startImmediately: true })
  const settle = TestClock.adjust(0)
  return { ...live, ...gate, model, cached, send, settle }
})

it.effect("a step without requests has no models", () =>
  Effect.gen(function* () {
    const { step } = yield* gated
    expect(yield* step()).toMatchObject({ index: 1, time: 1000, millis: 1000, models: [] })
    expect(yield* step("3 seconds")).toMatchObject({ index: 2, time: 4000, millis: 3000, models: [] })
  }),
)

it.effect("requests, batches, latencies, queue and instances of a step are those of that second", () =>
  Effect.gen(function* () {
    const { send, settle, step, release } = yield* gated
    // One batch for each instance, and a queue of two.
    yield* send(1)
    yield* settle
    yield* send(2)
    yield* settle
    yield* send(3)
    yield* TestClock.adjust(400)
    yield* send(4)
    expect((yield* step(600)).models).toEqual([{ name: "gated", version: "1", queue: 2, oldest: 1000, busy: 2 }])
    yield* release
    yield* settle
    yield* TestClock.adjust(500)
    yield* release
    yield* release
    const { models } = yield* step(500)
    expect(models).toMatchObject([
      {
        name: "gated",
        version: "1",
        requests: 4,
        rows: 4,
        batches: [1, 2, 2, 1],
        parts: [1_600_000, 0, 3_500_000, 0],
        busy: 1,
      },
    ])
    const [{ latency = [], queue } = {}] = models
    expect(queue).toBeUndefined()
    expect(LatencyHistogram.countOf(latency)).toBe(4)
    expect((LatencyHistogram.quantileOf(latency, 1) ?? 0) / 1e6).toBeCloseTo(1.5, 1)
    expect((yield* step()).models).toEqual([])
  }),
)

it.effect("failures have their reason, and refusals by a queue what refused", () =>
  Effect.gen(function* () {
    const { model, cached, send, settle, step } = yield* gated
    for (const X of [1, 2]) {
      yield* send(X)
      yield* settle
    }
    const waiting = [yield* send(3), yield* send(4), yield* send(5)]
    expect(yield* Effect.flip(model.infer({ X: 6 }))).toBeInstanceOf(QueueFull)
    yield* Effect.forEach(waiting.slice(0, 1), (fiber) => Fiber.interrupt(fiber))
    yield* Effect.flip(cached.infer({ X: -1 }))
    expect((yield* step()).models).toMatchObject([
      { name: "gated", errors: { REJECTED: 1, CANCELED: 1 }, refusals: { full: 1 }, queue: 2 },
      { name: "cached", version: "3", errors: { BACKEND: 1 } },
    ])
  }),
)

it.effect("the cache counts hits and misses", () =>
  Effect.gen(function* () {
    const { cached, step } = yield* gated
    yield* cached.infer({ X: 1 })
    yield* cached.infer({ X: 1 })
    yield* cached.infer({ X: 1 })
    const { models } = yield* step()
    expect(models).toMatchObject([{ name: "cached", requests: 3, hits: 2, misses: 1, rows: 3, batches: [1, 1] }])
    expect(LatencyHistogram.countOf(models[0]?.latency ?? [])).toBe(3)
  }),
)

it.effect("a model that leaves is read once more, and costs its requests nothing afterwards", () =>
  Effect.gen(function* () {
    const { cached, store, step } = yield* gated
    const { observers } = cached.model.description.statistics
    yield* cached.infer({ X: 1 })
    store.serve("cached", [])
    expect((yield* step()).models).toMatchObject([{ name: "cached", requests: 1 }])
    expect(observers.size).toBe(0)
    expect((yield* step()).models).toEqual([])
  }),
)

it.effect("the end of the view leaves no observer", () =>
  Effect.gen(function* () {
    const { cached, view } = yield* gated
    expect(cached.model.description.statistics.observers.size).toBe(1)
    view.close()
    expect(cached.model.description.statistics.observers.size).toBe(0)
  }),
)

it.effect("the process has processors, memory, delays, and requests in flight", () =>
  Effect.gen(function* () {
    const { step } = yield* gated
    const { process } = yield* step()
    expect(process).toMatchObject({ connections: 0, inFlight: 0, held: 0 })
    expect(process.memory).toBeGreaterThan(process.heap)
    expect(Math.min(process.cpu, process.buffers, process.delayMax, process.delayP99)).toBeGreaterThanOrEqual(0)
  }),
)
