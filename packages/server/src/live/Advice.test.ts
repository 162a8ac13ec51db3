/** Each kind of advice, from the situation that it is about: real models, and the time of the test clock. */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import * as TypedTensor from "@nereid/core/internal/tensor/TypedTensor"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { AdviceKind } from "@nereid/dashboard/internal/live/Advice"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { harness, makeGate } from "./LiveView.fixture.ts"

const scalar = { X: Tensor.scalar("INT32") }
const vector = { X: Tensor.FP32("n") }

const settle = TestClock.adjust(0)

/** Sends a request on a separate fiber, and gives the dispatcher its turn. */
const send = (request: Effect.Effect<unknown, unknown>) =>
  Effect.andThen(Effect.forkChild(request, { startImmediately: true }), settle)

const times = <A, E, R>(count: number, effect: (index: number) => Effect.Effect<A, E, R>) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    effect,
    { discard: true },
  )

const serve = Effect.fnUntraced(function* <S, A extends { readonly model: RunningModel }>(
  layer: Layer.Layer<S>,
  service: Effect.Effect<A, never, S>,
  options: Parameters<typeof harness>[2] = { dashboard: false },
) {
  const { models, view, step, gateway, url } = yield* harness(layer, Effect.all([service]), options)
  const [model] = models
  const kinds = (): ReadonlyArray<AdviceKind> => view.advice().map(({ kind }) => kind)
  return { model, view, step, kinds, gateway, url }
})

it.effect("no-batching: requests wait for a model that executes them one by one", () =>
  Effect.gen(function* () {
    class Single extends Model.Service<Single>()("single", { inputs: scalar, outputs: scalar }) {}
    const { wait } = yield* makeGate
    const { model, step, view, kinds } = yield* serve(
      Model.each(Single, ({ X }) => Effect.as(wait, { X })),
      Single,
    )
    yield* times(6, (X) => send(model.infer({ X })))
    yield* times(4, () => step())
    expect(kinds()).toEqual([])
    yield* step()
    expect(view.advice()).toEqual([
      {
        id: "no-batching:single:1",
        kind: "no-batching",
        model: "single",
        version: "1",
        severity: "problem",
        text: "Each request is executed by itself, while 5 requests wait on average. Batches would execute them together.",
        figure: { name: "waiting requests", value: 5, unit: "" },
        option: "maxBatchSize",
        guide: "batching.md",
      },
    ])
  }),
)

it.effect("full-batches: batches are full, and more requests wait", () =>
  Effect.gen(function* () {
    class Pairs extends Model.Service<Pairs>()("pairs", { inputs: scalar, outputs: scalar, maxBatchSize: 2 }) {}
    const { wait, release } = yield* makeGate
    const { model, step, view } = yield* serve(
      Model.batch(Pairs, ({ X }) => Effect.as(wait, { X })),
      Pairs,
    )
    yield* times(8, (X) => send(model.infer({ X })))
    yield* times(5, () =>
      Effect.gen(function* () {
        yield* step()
        yield* release
        yield* settle
        yield* times(2, (X) => send(model.infer({ X })))
      }),
    )
    yield* step()
    expect(view.advice()).toMatchObject([
      {
        kind: "full-batches",
        text: expect.stringMatching(/^Batches are full, with (1\.\d|2) of at most 2 rows, while /),
      },
    ])
  }),
)

it.effect("small-batches: requests wait that cannot share a batch", () =>
  Effect.gen(function* () {
    class Shapes extends Model.Service<Shapes>()("shapes", { inputs: vector, outputs: vector, maxBatchSize: 8 }) {}
    const { wait, release } = yield* makeGate
    const { model, step, view } = yield* serve(
      Model.batch(Shapes, ({ X }) => Effect.as(wait, { X })),
      Shapes,
    )
    const infer = (length: number) => model.infer({ X: TypedTensor.make("FP32", [length], new Float32Array(length)) })
    yield* times(12, (index) => send(infer(1 + index)))
    yield* times(5, (index) =>
      Effect.gen(function* () {
        yield* step()
        yield* release
        yield* settle
        yield* send(infer(20 + index))
      }),
    )
    yield* step()
    expect(view.advice()).toMatchObject([
      {
        kind: "small-batches",
        text: expect.stringMatching(/^Batches have 1 rows on average, of at most 8, while 11 requests wait/),
        option: "instances",
      },
    ])
  }),
)

it.effect("saturated: all instances are busy, and requests wait longer than they execute", () =>
  Effect.gen(function* () {
    class Pairs extends Model.Service<Pairs>()("pairs", { inputs: scalar, outputs: scalar, maxBatchSize: 2 }) {}
    const { wait, release } = yield* makeGate
    const { model, step, view } = yield* serve(
      Model.batch(Pairs, ({ X }) => Effect.as(wait, { X })),
      Pairs,
    )
    yield* times(4, (X) => send(model.infer({ X })))
    yield* times(20, () =>
      Effect.gen(function* () {
        yield* step()
        yield* release
        yield* settle
        yield* times(2, (X) => send(model.infer({ X })))
      }),
    )
    yield* step()
    expect(view.advice()).toMatchObject([
      { kind: "saturated", figure: { name: "time in the queue", unit: "ms" }, option: "instances" },
    ])
    expect(view.advice()[0]?.text).toMatch(/^Instances are busy 100 % of the time, and a request waits 1\d\d\d ms for/)
  }),
)

it.effect("useless-delay: requests wait for others that do not come", () =>
  Effect.gen(function* () {
    class Delayed extends Model.Service<Delayed>()("delayed", {
      inputs: scalar,
      outputs: scalar,
      maxBatchSize: 8,
      batching: { maxQueueDelay: "100 millis" },
    }) {}
    const { model, step, view } = yield* serve(
      Model.each(Delayed, ({ X }) => Effect.succeed({ X })),
      Delayed,
    )
    yield* times(5, () =>
      Effect.andThen(
        times(5, (X) => Effect.andThen(send(model.infer({ X })), TestClock.adjust(100))),
        step(500),
      ),
    )
    expect(view.advice()).toMatchObject([
      {
        kind: "useless-delay",
        text: expect.stringMatching(/^A request waits 100 ms for others, but batches have 1 requests on average/),
        option: "batching.maxQueueDelay",
      },
    ])
  }),
)

it.effect("queue-full, queue-timeouts and deadlines: why the queue refused requests", () =>
  Effect.gen(function* () {
    class Queued extends Model.Service<Queued>()("queued", {
      inputs: scalar,
      outputs: scalar,
      maxBatchSize: 2,
      batching: { maxQueueSize: 2, defaultTimeout: "3 seconds" },
    }) {}
    const { wait } = yield* makeGate
    const { model, step, view, kinds } = yield* serve(
      Model.batch(Queued, ({ X }) => Effect.as(wait, { X })),
      Queued,
    )
    yield* send(model.infer({ X: 0 }))
    yield* send(model.infer({ X: 1 }, { timeout: "1 second" }))
    yield* times(4, (X) => send(model.infer({ X })))
    yield* times(2, () => step())
    yield* times(3, () => step())
    expect(kinds().toSorted()).toEqual(["deadlines", "queue-full", "queue-timeouts"])
    expect(view.advice()).toMatchObject([
      { text: expect.stringMatching(/^3 requests \(60 %\) were refused: the queue of 2 was full/) },
      { text: expect.stringMatching(/^1 requests \(20 %\) were refused: their queue timeout passed/) },
      { text: expect.stringMatching(/^1 requests \(20 %\) were refused: the deadline of their callers passed/) },
    ])
  }),
)

it.effect("failures: a model that fails", () =>
  Effect.gen(function* () {
    class Broken extends Model.Service<Broken>()("broken", { inputs: scalar, outputs: scalar }) {}
    const { model, step, view } = yield* serve(
      Model.each(Broken, () => Effect.fail("it never works")),
      Broken,
    )
    yield* times(5, (X) => Effect.andThen(Effect.flip(model.infer({ X })), step()))
    expect(view.advice()).toMatchObject([
      { kind: "failures", text: "5 requests (100 %) failed in the model. The log has the errors." },
    ])
  }),
)

it.effect("idle-cache: requests never repeat", () =>
  Effect.gen(function* () {
    class Cached extends Model.Service<Cached>()("cached", { inputs: scalar, outputs: scalar }) {}
    const { model, step, view } = yield* serve(
      Model.each(Cached, ({ X }) => Effect.succeed({ X }), { responseCache: true }),
      Cached,
    )
    yield* times(98, (X) => model.infer({ X }))
    yield* times(2, () => model.infer({ X: 0 }))
    yield* times(5, () => step())
    expect(view.advice()).toMatchObject([
      {
        kind: "idle-cache",
        severity: "improvement",
        text: expect.stringMatching(/^The response cache answers 2 % of 100 requests/),
        option: "responseCache",
      },
    ])
  }),
)

it.effect("tensor-copies: moving tensors takes longer than the execution", () =>
  Effect.gen(function* () {
    class Large extends Model.Service<Large>()("large", { inputs: vector, outputs: vector, maxBatchSize: 4 }) {}
    const { model, step, view } = yield* serve(
      Model.each(Large, ({ X }) => Effect.succeed({ X })),
      Large,
    )
    const { statistics } = model.model.description
    // As an instance reports it.
    const compute = { input: 5e6, infer: 2e6, output: 1e6, batch: 1 }
    yield* times(20, () =>
      Effect.sync(() => {
        statistics.executed(1, compute, 0)
        statistics.succeeded(8e6, 0, compute)
      }),
    )
    yield* times(5, () => step())
    expect(view.advice()).toMatchObject([
      {
        kind: "tensor-copies",
        text: expect.stringMatching(/^Moving tensors takes 6 ms of each request, and its execution 2 ms/),
      },
    ])
  }),
)

it.effect("idle-instances: fewer instances would do", () =>
  Effect.gen(function* () {
    class Wide extends Model.Service<Wide>()("wide", { inputs: scalar, outputs: scalar }) {}
    const { model, step, view, kinds } = yield* serve(
      Model.each(Wide, ({ X }) => Effect.delay(Effect.succeed({ X }), "500 millis"), { instances: 4 }),
      Wide,
    )
    yield* times(19, (X) => Effect.andThen(send(model.infer({ X })), step()))
    expect(kinds()).toEqual([])
    yield* times(2, (X) => Effect.andThen(send(model.infer({ X })), step()))
    expect(view.advice()).toMatchObject([
      {
        kind: "idle-instances",
        text: "Of 4 instances, at most 0.5 were busy in any second. Fewer instances need less memory.",
      },
    ])
  }),
)

it.effect("held-memory: callers hold nearly all memory that they may hold", () =>
  Effect.gen(function* () {
    class Gated extends Model.Service<Gated>()("gated", {
      inputs: { X: Tensor.UINT8("n") },
      outputs: { X: Tensor.UINT8("n") },
      maxBatchSize: 1,
    }) {}
    const { wait, began, release } = yield* makeGate
    const { url, step, view } = yield* serve(
      Model.each(Gated, ({ X }) => Effect.as(wait, { X })),
      Gated,
      { dashboard: false, maxInFlightSize: 10_000 },
    )
    yield* Effect.forkChild(
      Effect.promise((signal) =>
        fetch(`${url}/v2/models/gated/infer`, {
          method: "POST",
          headers: { "inference-header-content-length": "0" },
          body: new Uint8Array(9_000),
          signal,
        }),
      ),
      { startImmediately: true },
    )
    yield* began
    yield* times(5, () => step())
    expect(view.advice()).toMatchObject([
      {
        id: "held-memory",
        kind: "held-memory",
        text: expect.stringMatching(/ hold 9\d % of the memory that they may hold/),
      },
    ])
    yield* release
  }),
)

it.live("event-loop-late: a handler blocks the thread of the server", () =>
  Effect.gen(function* () {
    class Blocking extends Model.Service<Blocking>()("blocking", { inputs: scalar, outputs: scalar }) {}
    class Quick extends Model.Service<Quick>()("quick", { inputs: scalar, outputs: scalar }) {}
    const block = new Int32Array(new SharedArrayBuffer(4))
    const live = yield* harness(
      Layer.merge(
        Model.each(Blocking, ({ X }) =>
          Effect.sync(() => {
            Atomics.wait(block, 0, 0, 150)
            return { X }
          }),
        ),
        Model.each(Quick, ({ X }) => Effect.succeed({ X })),
      ),
      Effect.all([Quick, Blocking]),
      { dashboard: false },
    )
    const [quick, blocking] = live.models
    yield* times(5, (X) =>
      Effect.gen(function* () {
        yield* quick.infer({ X })
        yield* blocking.infer({ X })
        live.view.step()
      }),
    )
    expect(live.view.advice()).toMatchObject([
      {
        id: "event-loop-late",
        model: "blocking",
        text: expect.stringMatching(
          /^The event loop was late by up to \d+ ms, and by more than 100 ms in \d of 5 seconds\./,
        ),
        option: "Worker.layer",
        guide: "workers.md",
      },
    ])
  }),
)
