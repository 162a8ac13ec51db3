/** The header Server-Timing of responses over HTTP, with the time of the test clock. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { Effect, Fiber, Layer, Queue, Tracer } from "effect"
import { TestClock } from "effect/testing"
import * as Gateway from "../gateway/Gateway.ts"
import * as Spans from "../trace/Spans.ts"
import * as Tracing from "../trace/Tracing.ts"
import type { TraceSettings } from "../trace/TraceSettings.ts"
import { inferModel } from "./HttpInfer.fixture.ts"
import * as HttpServer from "./HttpServer.ts"

const fields = { X: Tensor.scalar("INT32") }

/** Takes 40 ms, and fails on negative numbers. */
class Slow extends Model.Service<Slow>()("slow", { inputs: fields, outputs: fields, maxBatchSize: 4 }) {}

class Cached extends Model.Service<Cached>()("cached", { inputs: fields, outputs: fields }) {}
const CachedLive = Model.each(Cached, ({ X }) => Effect.succeed({ X }), { responseCache: true })

const harness = Effect.fnUntraced(function* (trace: Partial<TraceSettings> = {}) {
  const began = yield* Queue.unbounded<void>()
  const SlowLive = Model.each(Slow, ({ X }) =>
    Effect.andThen(
      Queue.offer(began, undefined),
      Effect.delay(X < 0 ? Effect.fail("negative") : Effect.succeed({ X }), "40 millis"),
    ),
  )
  const context = yield* Layer.build(Layer.merge(SlowLive, CachedLive))
  const services = yield* Effect.provideContext(Effect.all([Slow, Cached]), context)
  const store = ModelStore.of(services.map(({ model }) => model))
  const server = { id: "nereid", version: "0" }
  const tracing = yield* Tracing.make(store, trace, server)
  const gateway = Gateway.make(store, { ...server, tracing, spans: yield* Spans.make })
  const at = yield* HttpServer.make(gateway, { host: "127.0.0.1", port: 0 })
  const infer = (X: number, headers: Readonly<Record<string, string>> = timed, model = "slow") => {
    const inputs = [{ name: "X", datatype: "INT32", shape: model === "slow" ? [1, 1] : [1], data: [X] }]
    return Effect.forkChild(inferModel(at, model, JSON.stringify({ inputs }), headers), { startImmediately: true })
  }
  const generate = (X: number) =>
    Effect.forkChild(inferModel(at, "slow", JSON.stringify({ X }), timed, "generate"), { startImmediately: true })
  /** Waits until so many requests are in the server. */
  const inFlight = (count: number) =>
    Effect.repeat(
      Effect.map(Effect.promise(nextTurn), () => gateway.inFlight()),
      { until: (now) => now === count },
    )
  return { infer, generate, inFlight, began: Queue.take(began) }
})

const timed = { "nereid-timing": "1" }

const timing = (fiber: Fiber.Fiber<{ readonly headers: object }, unknown>) =>
  Effect.map(Fiber.join(fiber), ({ headers }) => new Map(Object.entries(headers)).get("server-timing"))

it.effect("has the time of each part, and the rows of the batch", () =>
  Effect.gen(function* () {
    const { infer, inFlight, began } = yield* harness()
    const first = yield* infer(1)
    yield* began
    yield* TestClock.adjust(10)
    const others = [yield* infer(2), yield* infer(3, {}), yield* infer(4, { "nereid-timing": "0" })]
    yield* inFlight(4)
    yield* TestClock.adjust(30)
    expect(yield* timing(first)).toBe(
      `total;dur=40, queue;dur=0, input;dur=0, compute;dur=40, output;dur=0, batch;desc="1"`,
    )
    yield* began
    yield* began
    yield* began
    yield* TestClock.adjust(40)
    expect(yield* Effect.forEach(others, timing)).toEqual([
      `total;dur=70, queue;dur=30, input;dur=0, compute;dur=40, output;dur=0, batch;desc="3"`,
      undefined,
      undefined,
    ])
  }),
)

it.effect("is there for generate, and for a request that has failed", () =>
  Effect.gen(function* () {
    const { infer, generate, began } = yield* harness()
    const generated = yield* generate(1)
    yield* began
    yield* TestClock.adjust(40)
    expect(yield* timing(generated)).toContain(`compute;dur=40, output;dur=0, batch;desc="1"`)
    const failed = yield* infer(-1)
    yield* began
    yield* TestClock.adjust(40)
    expect((yield* Fiber.join(failed)).status).toBe(500)
    expect(yield* timing(failed)).toContain("total;dur=40, queue;dur=0")
  }),
)

it.effect("has only a total for a request that the cache answers", () =>
  Effect.gen(function* () {
    const { infer } = yield* harness()
    expect(yield* timing(yield* infer(1, timed, "cached"))).toContain(`batch;desc="1"`)
    expect(yield* timing(yield* infer(1, timed, "cached"))).toBe("total;dur=0")
  }),
)

it.effect("is there for requests with a trace and with spans", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-timing-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true })),
    )
    const tracer = Tracer.make({ span: (options) => new Tracer.NativeSpan(options) })
    const { infer, began } = yield* Effect.provideService(
      harness({ file: join(folder, "trace.json"), levels: ["TIMESTAMPS"], rate: 1 }),
      Tracer.Tracer,
      tracer,
    )
    const request = yield* infer(1)
    yield* began
    yield* TestClock.adjust(40)
    expect(yield* timing(request)).toContain(`compute;dur=40, output;dur=0, batch;desc="1"`)
  }),
)
