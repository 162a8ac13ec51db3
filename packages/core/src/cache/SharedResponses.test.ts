/** Models of several servers that share responses: who executes, what is shared, and requests that do not wait. */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Model from "../Model.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"
import { CacheSettings, type SharedCache } from "./CacheSettings.ts"
import type { ResponseCacheOptions } from "./ResponseCache.ts"

/** A shared cache in memory. Lookups are answered at once, or when `answer` is called. */
class MemoryCache implements SharedCache {
  readonly values = new Map<string, Uint8Array>()
  readonly held: Array<() => void> = []
  isHeld = false
  cancelled = 0

  readonly keyOf: SharedCache["keyOf"] = (parts) =>
    JSON.stringify([...parts].map((part) => (typeof part === "string" ? part : [...part])))

  readonly get: SharedCache["get"] = (key, found) => {
    const answer = () => found(this.values.get(key))
    if (this.isHeld) this.held.push(answer)
    else queueMicrotask(answer)
    return () => {
      this.cancelled += 1
      this.held.splice(this.held.indexOf(answer), 1)
    }
  }

  readonly set: SharedCache["set"] = (key, value) => void this.values.set(key, value)

  answer(): void {
    for (const answer of this.held.splice(0)) answer()
  }
}

class Double extends Model.Service<Double>()("double", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { Y: Tensor.scalar("FP32") },
  maxBatchSize: 4,
}) {}

/** A server with the model. */
const server = (shared: SharedCache, responseCache: ResponseCacheOptions) =>
  Testing.model(
    Model.each(Double, ({ X }) => ({ Y: X * 2 }), { responseCache }).pipe(
      Layer.provide(Layer.succeed(CacheSettings, { shared })),
    ),
  )

const counts = ({ description: { statistics } }: RunningModel) => ({
  success: statistics.success.count,
  hits: statistics.cacheHit.count,
  misses: statistics.cacheMiss.count,
  cancelled: statistics.failures.CANCELED,
})

const revision = "1"

it.effect("a response that one server has executed is a hit of the other", () =>
  Effect.gen(function* () {
    const cache = new MemoryCache()
    const [one, other] = [yield* server(cache, { revision }), yield* server(cache, { revision })]
    expect(yield* one.infer({ X: 3 })).toEqual({ Y: 6 })
    expect(yield* other.infer({ X: 3 })).toEqual({ Y: 6 })
    expect(yield* other.infer({ X: 3 })).toEqual({ Y: 6 })
    expect([yield* one.executions, yield* other.executions]).toEqual([[{ rows: 1, requests: 1 }], []])
    expect(counts(one.model)).toEqual({ success: 1, hits: 0, misses: 1, cancelled: 0 })
    expect(counts(other.model)).toEqual({ success: 2, hits: 2, misses: 0, cancelled: 0 })
    expect(cache.values.size).toBe(1)
  }),
)

it.effect("without a revision, or with another, nothing is shared", () =>
  Effect.gen(function* () {
    const cache = new MemoryCache()
    const [one, other] = [yield* server(cache, { revision }), yield* server(cache, { revision: "2" })]
    const alone = yield* server(cache, {})
    for (const model of [one, other, alone]) yield* model.infer({ X: 3 })
    for (const model of [one, other, alone]) expect(yield* model.executions).toHaveLength(1)
    expect(cache.values.size).toBe(2)
  }),
)

it.effect("bytes that are no response are a miss, and are replaced", () =>
  Effect.gen(function* () {
    const cache = new MemoryCache()
    const [one, other] = [yield* server(cache, { revision }), yield* server(cache, { revision })]
    yield* one.infer({ X: 3 })
    const [[key, value] = ["", new Uint8Array()]] = cache.values
    cache.values.set(key, Uint8Array.of(1, 2, 3))
    expect(yield* other.infer({ X: 3 })).toEqual({ Y: 6 })
    expect(yield* other.executions).toHaveLength(1)
    expect(cache.values.get(key)).toEqual(value)
  }),
)

it.effect("equal requests share one lookup; one that leaves is cancelled, and the last one cancels the lookup", () =>
  Effect.gen(function* () {
    const cache = new MemoryCache()
    cache.isHeld = true
    const model = yield* server(cache, { revision })
    const [first, second] = [
      yield* Effect.forkChild(model.infer({ X: 3 }), { startImmediately: true }),
      yield* Effect.forkChild(model.infer({ X: 3 }), { startImmediately: true }),
    ]
    expect(cache.held).toHaveLength(1)
    yield* Fiber.interrupt(first)
    expect([cache.held.length, cache.cancelled]).toEqual([1, 0])
    yield* Fiber.interrupt(second)
    expect([cache.held.length, cache.cancelled]).toEqual([0, 1])
    expect(counts(model.model)).toEqual({ success: 0, hits: 0, misses: 0, cancelled: 2 })
    expect(yield* model.executions).toEqual([])
  }),
)

it.effect("a deadline ends a request that waits for the lookup", () =>
  Effect.gen(function* () {
    const cache = new MemoryCache()
    cache.isHeld = true
    const model = yield* server(cache, { revision })
    const request = Effect.exit(model.infer({ X: 3 }, { timeout: "10 millis" }))
    const fiber = yield* Effect.forkChild(request, { startImmediately: true })
    yield* TestClock.adjust("10 millis")
    expect(String(yield* Fiber.join(fiber))).toContain("DeadlineExceeded")
    expect(yield* model.executions).toEqual([])
  }),
)

it.effect("a model that leaves answers the requests that wait for a lookup first", () =>
  Effect.gen(function* () {
    const cache = new MemoryCache()
    cache.isHeld = true
    const scope = yield* Scope.make()
    const model = yield* Scope.provide(server(cache, { revision }), scope)
    const request = yield* Effect.forkChild(model.infer({ X: 3 }), { startImmediately: true })
    const drained = yield* Effect.forkChild(model.model.life.drained, { startImmediately: true })
    expect(drained.pollUnsafe()).toBeUndefined()
    cache.answer()
    yield* Fiber.join(drained)
    expect(yield* Fiber.join(request)).toEqual({ Y: 6 })
    yield* Scope.close(scope, Exit.void)
  }),
)
