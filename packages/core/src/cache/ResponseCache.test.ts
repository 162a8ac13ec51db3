/** Models with a response cache: executed requests, the response to each caller, and statistics. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Queue, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { InvalidRequest } from "../error/InferenceError.ts"
import { noParameters, type Parameters, type Request } from "../request/Request.ts"
import * as Model from "../Model.ts"
import { RequestContext } from "../handler/RequestContext.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { infer } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"
import { make } from "../tensor/TypedTensor.ts"

class Double extends Model.Service<Double>()("double", {
  inputs: { x: Tensor.FP32("n"), text: Tensor.optional(Tensor.utf8()) },
  outputs: { y: Tensor.FP32("n") },
  maxBatchSize: 4,
}) {}

const x = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length], Float32Array.from(values))

const double = Model.each(
  Double,
  ({ x }) => ({
    y: Tensor.make(
      "FP32",
      x.shape,
      x.data.map((v) => v * 2),
    ),
  }),
  {
    responseCache: true,
  },
)

const counts = ({ description: { statistics } }: RunningModel) => ({
  success: statistics.success.count,
  inferences: statistics.inferenceCount,
  executed: statistics.executionCount,
  hits: statistics.cacheHit.count,
  misses: statistics.cacheMiss.count,
})

it.effect("ten identical requests, one after the other: the model is invoked once, nine are hits", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(double)
    for (let turn = 0; turn < 10; turn++) expect([...(yield* model.infer({ x: x(1, 2) })).y.data]).toEqual([2, 4])
    expect(yield* model.executions).toEqual([{ rows: 1, requests: 1 }])
    expect(counts(model.model)).toEqual({ success: 10, inferences: 10, executed: 1, hits: 9, misses: 1 })
    const { queue, computeInfer, cachedCount, batches } = model.model.description.statistics
    expect([queue.count, computeInfer.count, cachedCount, batches.size]).toEqual([10, 1, 9, 1])
  }),
)

it.effect("other values, extents, optional inputs, and the same bytes cut otherwise, are other requests", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(double)
    yield* model.infer({ x: x(1, 2) })
    yield* model.infer({ x: x(2, 1) })
    yield* model.infer({ x: x(1, 2), text: "" })
    yield* model.infer({ x: x(1, 2), text: "a" })
    yield* model.inferBatch({ x: Tensor.make("FP32", [2, 1], Float32Array.of(1, 2)) })
    expect(yield* model.executions).toHaveLength(5)
    expect(counts(model.model)).toMatchObject({ hits: 0, misses: 5 })
    yield* model.inferBatch({ x: Tensor.make("FP32", [2, 1], Float32Array.of(1, 2)) })
    expect(counts(model.model)).toMatchObject({ inferences: 8, hits: 1, executed: 5 })
  }),
)

/** A request as a front end sends it, with id, parameters and requested outputs. */
const request = (more: Partial<Request> = {}): Request => ({
  id: "",
  inputs: [make("FP32", [1, 1], Float32Array.of(1)), undefined],
  rows: 1,
  parameters: noParameters,
  deadline: undefined,
  ...more,
})

it.effect(
  "parameters and requested outputs, which a handler sees, count; ids, and what is about scheduling, do not",
  () =>
    Effect.gen(function* () {
      const { model } = yield* Testing.model(double)
      const isHit = Effect.fnUntraced(function* (more: Partial<Request>) {
        const before = model.description.statistics.cacheHit.count
        yield* infer(model.calls, request(more))
        return model.description.statistics.cacheHit.count > before
      })
      expect(yield* isHit({})).toBe(false)
      expect(yield* isHit({ id: "other", parameters: { priority: 1n, timeout: 5n } })).toBe(true)
      for (const parameters of [{ a: 1n }, { a: 1 }, { a: "1" }, { a: true }, { b: 1n }, { a: 1n, b: 1n }]) {
        expect(yield* isHit({ parameters })).toBe(false)
      }
      expect(yield* isHit({ parameters: { b: 1n, a: 1n } })).toBe(true)
      expect(yield* isHit({ requestedOutputs: ["y"] })).toBe(false)
      expect(yield* isHit({ requestedOutputs: ["y"] })).toBe(true)
      for (let turn = 0; turn < 2; turn++) expect(yield* isHit({ parameters: { sequence_id: 7n } })).toBe(false)
    }),
)

it.effect("only the parameters that are named, where they are", () =>
  Effect.gen(function* () {
    const responseCache = { parameters: ["by"] }
    const scaled = Model.each(
      Double,
      ({ x }, { parameters: { by } }) => ({
        y: Tensor.make(
          "FP32",
          x.shape,
          x.data.map((v) => v * Number(by)),
        ),
      }),
      { responseCache },
    )
    const model = yield* Testing.model(scaled)
    const inferAll = (parameters: Parameters) =>
      Effect.map(model.infer({ x: x(1) }, { parameters }), ({ y }) => y.data[0])
    expect(yield* inferAll({ by: 2n, traceparent: "a" })).toBe(2)
    expect(yield* inferAll({ by: 2n, traceparent: "b" })).toBe(2)
    expect(yield* inferAll({ by: 3n, traceparent: "b" })).toBe(3)
    expect(counts(model.model)).toMatchObject({ hits: 1, misses: 2 })
  }),
)

it.effect("changes by a caller or a handler do not affect cached responses", () =>
  Effect.gen(function* () {
    const memory = new Float32Array(1)
    const model = yield* Testing.model(
      Model.each(
        Double,
        ({ x }) => {
          memory[0] = x.data[0] ?? 0
          return { y: Tensor.make("FP32", [1], memory) }
        },
        { responseCache: true },
      ),
    )
    const { y } = yield* model.infer({ x: x(1) })
    y.data[0] = 100
    const repeated = yield* model.infer({ x: x(1) })
    expect(repeated.y.data[0]).toBe(1)
    repeated.y.data[0] = 100
    yield* model.infer({ x: x(2) })
    expect((yield* model.infer({ x: x(1) })).y.data[0]).toBe(1)
    expect(counts(model.model)).toMatchObject({ hits: 2, misses: 2 })
  }),
)

it.effect("limited in bytes: the least recently used entry is evicted", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(
      Model.each(Double, ({ x }) => ({ y: x }), { responseCache: { maxBytes: 30_000 } }),
    )
    const large = (value: number) => model.infer({ x: x(...Array.from({ length: 2000 }, () => value)) })
    for (const value of [1, 2, 3, 1, 4, 1, 2]) yield* large(value)
    expect(counts(model.model)).toMatchObject({ hits: 2, misses: 5 })
  }),
)

it.effect("response parameters are part of an answer", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(
      Model.each(
        Double,
        Effect.fn(function* ({ x }) {
          const { setParameter } = yield* RequestContext
          yield* setParameter("language", "en")
          return { y: x }
        }),
        { responseCache: true },
      ),
    )
    const { parameters } = yield* infer(model.model.calls, request())
    expect(parameters).toEqual({ language: "en" })
    expect((yield* infer(model.model.calls, request())).parameters).toEqual(parameters)
    expect(counts(model.model)).toMatchObject({ hits: 1 })
  }),
)

/** A model that blocks until the test releases or fails it, with its received and interrupted requests. */
const gated = Effect.gen(function* () {
  const executed = yield* Queue.unbounded<string>()
  const gates = yield* Queue.unbounded<Result.Result<void, InvalidRequest>>()
  let interrupted = 0
  const model = yield* Testing.model(
    Model.each(
      Double,
      Effect.fnUntraced(
        function* ({ x }) {
          const { id } = yield* RequestContext
          yield* Queue.offer(executed, id)
          const gate = yield* Queue.take(gates)
          if (Result.isFailure(gate)) {
            return yield* new InvalidRequest({ message: `[request id: ${id}] ${gate.failure.message}` })
          }
          return { y: x }
        },
        Effect.onInterrupt(() => Effect.sync(() => void (interrupted += 1))),
      ),
      { responseCache: true },
    ),
  )
  const call = (id: string, timeout?: number) =>
    Effect.forkChild(model.infer({ x: x(1) }, { id, ...(timeout === undefined ? {} : { timeout }) }), {
      startImmediately: true,
    })
  return {
    model,
    call,
    executed,
    open: Queue.offer(gates, Result.succeed(undefined)),
    refuse: Queue.offer(gates, Result.fail(new InvalidRequest({ message: "no" }))),
    interrupted: () => interrupted,
  }
})

it.effect("identical requests at the same time are executed once", () =>
  Effect.gen(function* () {
    const { model, call, executed, open } = yield* gated
    const fibers = yield* Effect.forEach(["a", "b", "c"], (id) => call(id))
    expect(yield* Queue.take(executed)).toBe("a")
    yield* TestClock.adjust("1 second")
    yield* open
    const responses = yield* Fiber.joinAll(fibers)
    expect(responses.map(({ y }) => y.data[0])).toEqual([1, 1, 1])
    expect(new Set(responses.map(({ y }) => y.data.buffer)).size).toBe(3)
    expect(yield* Queue.size(executed)).toBe(0)
    expect(counts(model.model)).toEqual({ success: 3, inferences: 3, executed: 1, hits: 2, misses: 1 })
    expect(model.model.description.statistics.success.ns).toBe(3e9)
  }),
)

it.effect("an error goes to all who wait, each with its own id, and is not kept", () =>
  Effect.gen(function* () {
    const { model, call, executed, open, refuse } = yield* gated
    const fibers = yield* Effect.forEach(["a", "b"], (id) => call(id))
    yield* Queue.take(executed)
    yield* refuse
    const failures = yield* Effect.forEach(fibers, (fiber) => Effect.flip(Fiber.join(fiber)))
    expect(failures.map(({ _tag, message }) => [_tag, message])).toEqual([
      ["InvalidRequest", "[request id: a] no"],
      ["InvalidRequest", "[request id: b] no"],
    ])
    const { fail, failures: reasons } = model.model.description.statistics
    expect([fail.count, reasons.BACKEND]).toEqual([2, 2])
    const repeated = yield* call("c")
    expect(yield* Queue.take(executed)).toBe("c")
    yield* open
    yield* Fiber.join(repeated)
    expect(counts(model.model)).toMatchObject({ hits: 0, misses: 1 })
  }),
)

it.effect("a cancelled request does not cancel the execution for others, even if it came first", () =>
  Effect.gen(function* () {
    const { model, call, executed, open, interrupted } = yield* gated
    const fibers = yield* Effect.forEach(["a", "b", "c"], (id) => call(id))
    yield* Queue.take(executed)
    yield* Fiber.interrupt(fibers[0]!)
    yield* Fiber.interrupt(fibers[2]!)
    expect(interrupted()).toBe(0)
    yield* open
    expect((yield* Fiber.join(fibers[1]!)).y.data[0]).toBe(1)
    expect(counts(model.model)).toEqual({ success: 1, inferences: 1, executed: 1, hits: 0, misses: 1 })
    expect(model.model.description.statistics.failures.CANCELED).toBe(2)
  }),
)

it.effect("the execution is cancelled with its last request, and the next request starts another", () =>
  Effect.gen(function* () {
    const { model, call, executed, open, interrupted } = yield* gated
    const fibers = yield* Effect.forEach(["a", "b"], (id) => call(id))
    yield* Queue.take(executed)
    yield* Fiber.interruptAll(fibers)
    expect(interrupted()).toBe(1)
    expect(model.model.description.statistics.failures.CANCELED).toBe(2)
    const next = yield* call("c")
    expect(yield* Queue.take(executed)).toBe("c")
    yield* open
    yield* Fiber.join(next)
    expect(counts(model.model)).toMatchObject({ success: 1, hits: 0, misses: 1 })
  }),
)

it.effect("a deadline is that of the one who has it", () =>
  Effect.gen(function* () {
    const { call, executed, open, interrupted } = yield* gated
    const [short, long] = [yield* call("a", 10), yield* call("b")]
    yield* Queue.take(executed)
    yield* TestClock.adjust(10)
    expect(yield* Effect.flip(Fiber.join(short))).toMatchObject({
      _tag: "DeadlineExceeded",
      message: "[request id: a] Deadline Exceeded",
    })
    expect(interrupted()).toBe(0)
    yield* open
    yield* Fiber.join(long)
    const single = yield* call("c", 10)
    expect(Exit.isSuccess(yield* Fiber.await(single))).toBe(true)
  }),
)

it.effect("the deadline of the only waiting request cancels the execution", () =>
  Effect.gen(function* () {
    const { call, executed, interrupted } = yield* gated
    const short = yield* call("a", 10)
    yield* Queue.take(executed)
    yield* TestClock.adjust(10)
    expect(yield* Effect.flip(Fiber.join(short))).toMatchObject({ _tag: "DeadlineExceeded" })
    expect(interrupted()).toBe(1)
  }),
)

it.effect("a refusal by the queue is not cached", () =>
  Effect.gen(function* () {
    class Small extends Model.Service<Small>()("small", {
      inputs: { x: Tensor.scalar("INT32") },
      outputs: { x: Tensor.scalar("INT32") },
      batching: { maxQueueSize: 1 },
    }) {}
    const open = yield* Deferred.make<void>()
    const held = ({ x }: { readonly x: number }) => Effect.as(Deferred.await(open), { x })
    const model = yield* Testing.model(Model.each(Small, held, { responseCache: true }))
    const call = (x: number) => Effect.forkChild(model.infer({ x }), { startImmediately: true })
    const first = yield* call(1)
    yield* Testing.advance(0)
    const [second, third] = [yield* call(2), yield* call(3)]
    expect(yield* Effect.flip(Fiber.join(third))).toMatchObject({ _tag: "QueueFull" })
    yield* Deferred.succeed(open, undefined)
    yield* Fiber.joinAll([first, second])
    expect(yield* model.infer({ x: 3 })).toEqual({ x: 3 })
  }),
)

it.effect("a warm-up neither fills nor reads it", () =>
  Effect.gen(function* () {
    let calls = 0
    const layer = Model.each(
      Double,
      ({ x }) => {
        calls += 1
        return { y: x }
      },
      { responseCache: true, warmUp: { count: 2 } },
    )
    const model = yield* Testing.model(layer, Double)
    expect(calls).toBe(2)
    yield* model.infer({ x: x(0) })
    expect(calls).toBe(3)
    expect(counts(model.model)).toMatchObject({ hits: 0, misses: 1 })
  }),
)

it("is not for decoupled models, and its bounds are checked, at declaration", () => {
  const stream = () => Stream.empty
  // @ts-expect-error no option of theirs
  expect(() => Model.stream(Double, stream, { responseCache: true })).toThrow(
    'Model "double": responseCache requires a model that is not decoupled.',
  )
  expect(() => Model.each(Double, ({ x }) => ({ y: x }), { responseCache: { maxBytes: 0 } })).toThrow(
    'Model "double": responseCache.maxBytes must be an integer of at least 1, but 0 was given.',
  )
})
