/** Ensembles of models in code: order of execution, responses, and cancellation. */
import { ModelStore } from "../lifecycle/ModelStore.ts"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { InvalidRequest } from "../error/InferenceError.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as Model from "../Model.ts"
import type { Request } from "../request/Request.ts"
import { RequestContext } from "../handler/RequestContext.ts"
import { Registry } from "../lifecycle/Registry.ts"
import { Served } from "../lifecycle/Served.ts"
import { type RunningModel, Watcher } from "../running/RunningModel.ts"
import { infer, stream } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"
import * as Ensemble from "./Ensemble.ts"
import type { EnsembleStep } from "./EnsembleGraph.ts"

const numbers = {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  maxBatchSize: 8,
} as const

class Twice extends Model.Service<Twice>()("twice", numbers) {}
class Plus extends Model.Service<Plus>()("plus", numbers) {}
class Sum extends Model.Service<Sum>()("sum", {
  inputs: { a: Tensor.scalar("INT32"), b: Tensor.optional(Tensor.scalar("INT32")) },
  outputs: { y: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}
class Count extends Model.Service<Count>()("count", { ...numbers, maxBatchSize: 4 }) {}

class Whole extends Model.Service<Whole>()("whole", numbers) {}
class Two extends Model.Service<Two>()("two", {
  inputs: { x: Tensor.scalar("INT32"), z: Tensor.optional(Tensor.scalar("INT32")) },
  outputs: { y: Tensor.scalar("INT32"), more: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}

const TwiceLive = Model.each(Twice, ({ x }) => ({ y: x * 2 }))
const PlusLive = Model.each(Plus, ({ x }) => ({ y: x + 1 }))
const SumLive = Model.each(Sum, ({ a, b = 1000 }) => ({ y: a + b }))
const CountLive = Model.stream(Count, ({ x }) => Array.from({ length: x }, (_, index) => ({ y: index + 1 })))

const step = (model: string, inputs: Record<string, string>, outputs: Record<string, string>): EnsembleStep => ({
  model,
  version: "",
  inputs: new Map(Object.entries(inputs)),
  outputs: new Map(Object.entries(outputs)),
})

/** x → twice → plus → y */
const chain = [step("plus", { x: "doubled" }, { y: "y" }), step("twice", { x: "x" }, { y: "doubled" })]

/** An ensemble of the models of a layer, by their names. */
const compose = Effect.fnUntraced(function* <A, E>(
  { definition }: { readonly definition: Definition<Fields, Fields> },
  layer: Layer.Layer<A, E, Registry | Served>,
  steps: ReadonlyArray<EnsembleStep>,
  more: Partial<Pick<Ensemble.EnsembleOptions, "maxInflightRequests" | "inner" | "responseCache">> = {},
) {
  const models: Array<RunningModel> = []
  const { name, version, signature, maxBatchSize, batching } = definition
  const built = Layer.build(Layer.provideMerge(layer, Registry.layer))
  const context = yield* Effect.provideService(built, Watcher, (model) => void models.push(model))
  const versions = (name: string) => models.filter((model) => model.description.name === name)
  const ensemble = yield* Effect.provideService(
    Ensemble.make({
      name,
      version,
      signature,
      inner: signature,
      maxBatchSize,
      batching,
      steps,
      maxInflightRequests: 0,
      ...more,
      resolve: () => Result.succeed(steps.flatMap(({ model }) => versions(model))),
    }),
    Watcher,
    (model) => void models.push(model),
  )
  const problem = ensemble.relink()
  if (problem !== undefined) throw new Error(problem)
  const { running: model } = ensemble
  yield* Effect.flatMap(Served, (served) => served.include(ModelStore.of(models))).pipe(Effect.provideContext(context))
  const numbersOf = (response: { readonly outputs: ReadonlyArray<Tensor.Tensor | undefined> }) =>
    response.outputs.map((tensor) => [...(tensor?.data ?? [])].map(Number))
  return {
    model,
    child: (name: string) => {
      const [found] = versions(name)
      if (found === undefined) throw new Error(`there is no ${name}`)
      return found
    },
    /** The outputs for these rows of x. */
    infer: (rows: ReadonlyArray<number>, more: Partial<Request> = {}) =>
      Effect.map(infer(model.calls, { ...request(rows, signature.inputs.length), ...more }), numbersOf),
    /** The first output of each response. */
    responses: (x: number, more: Partial<Request> = {}) =>
      Stream.map(
        stream(model.calls, { ...request([x], signature.inputs.length), ...more }),
        (response) => numbersOf(response)[0]?.[0],
      ),
  }
})

const column = (rows: ReadonlyArray<number>) => Tensor.make("INT32", [rows.length, 1], Int32Array.from(rows))

const request = (rows: ReadonlyArray<number>, inputs: number): Request => ({
  id: "",
  inputs: Array.from({ length: inputs }, (_, index) => (index === 0 ? column(rows) : undefined)),
  rows: rows.length,
  parameters: {},
  deadline: undefined,
})

/** A handler that never answers, and says when it has begun and was ended. */
const waiting = Effect.gen(function* () {
  const started = yield* Deferred.make<void>()
  const ended = yield* Deferred.make<void>()
  const forever = Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
    Effect.onInterrupt(() => Deferred.succeed(ended, undefined)),
  )
  return { started, ended, forever }
})

describe("a request", () => {
  it.effect("goes through the steps as their tensors say, whatever their order", () =>
    Effect.gen(function* () {
      const { infer: call, model, child } = yield* compose(Whole, Layer.mergeAll(TwiceLive, PlusLive), chain)
      expect(yield* call([1, 2, 3])).toEqual([[3, 5, 7]])
      expect(model).toMatchObject({ description: { platform: "ensemble" }, calls: { decoupled: false } })
      expect(model.life.instanceGroups()).toEqual([])
      const counts = ({
        description: {
          statistics: { success, inferenceCount, executionCount },
        },
      }: RunningModel) => [success.count, inferenceCount, executionCount]
      expect([model, child("twice"), child("plus")].map(counts)).toEqual([
        [1, 3, 1],
        [1, 3, 1],
        [1, 3, 1],
      ])
      const { computeInfer, queue } = model.description.statistics
      expect([computeInfer.count, queue.count, queue.ns]).toEqual([1, 1, 0])
      expect(computeInfer.ns).toBe(
        child("twice").description.statistics.computeInfer.ns + child("plus").description.statistics.computeInfer.ns,
      )
    }),
  )

  it.effect("has steps at the same time that do not wait for each other", () =>
    Effect.gen(function* () {
      const both = yield* Deferred.make<void>()
      let startedCount = 0
      const meet = Effect.suspend(() => {
        startedCount += 1
        return startedCount === 2 ? Deferred.succeed(both, undefined) : Deferred.await(both)
      })
      const layer = Layer.mergeAll(
        Model.each(Twice, ({ x }) => Effect.as(meet, { y: x * 2 })),
        Model.each(Plus, ({ x }) => Effect.as(meet, { y: x + 1 })),
        SumLive,
      )
      const { infer: call } = yield* compose(Whole, layer, [
        step("twice", { x: "x" }, { y: "a" }),
        step("plus", { x: "x" }, { y: "b" }),
        step("sum", { a: "a", b: "b" }, { y: "y" }),
      ])
      expect(yield* call([10])).toEqual([[31]])
    }),
  )

  it.effect("shares the batches of the models with other requests, and with their own callers", () =>
    Effect.gen(function* () {
      const { infer: call, child } = yield* compose(Whole, Layer.mergeAll(TwiceLive, PlusLive), chain)
      const own = Effect.map(infer(child("twice").calls, request([100], 1)), ({ outputs }) => outputs[0]?.data[0])
      const responses = yield* Effect.all([own, ...[1, 2, 3].map((x) => call([x]))], { concurrency: "unbounded" })
      expect(responses).toEqual([200, [[3]], [[5]], [[7]]])
      expect(child("twice").description.statistics).toMatchObject({ inferenceCount: 4, executionCount: 1 })
    }),
  )

  it.effect("passes its id, its parameters and its deadline on", () =>
    Effect.gen(function* () {
      const received: Array<unknown> = []
      const RecordingLive = Model.each(Twice, ({ x }) =>
        Effect.map(RequestContext, ({ id, parameters, deadline, requestedOutputs }) => {
          received.push([id, parameters, deadline, requestedOutputs])
          return { y: x }
        }),
      )
      const { infer: call } = yield* compose(Whole, Layer.mergeAll(RecordingLive, PlusLive), chain)
      yield* call([1], { id: "7", parameters: { priority: 2n, tone: "kind" }, deadline: 5000 })
      expect(received).toEqual([["7", { priority: 2n, tone: "kind" }, 5000, []]])
    }),
  )

  it.effect("has the parameters that its steps answer with", () =>
    Effect.gen(function* () {
      const Setting = Model.each(Twice, ({ x }) =>
        Effect.flatMap(RequestContext, ({ setParameter }) => Effect.as(setParameter("tokens", 3n), { y: x })),
      )
      const { model } = yield* compose(Whole, Layer.mergeAll(Setting, PlusLive), chain)
      expect((yield* infer(model.calls, request([1], 1))).parameters).toMatchObject({ tokens: 3n })
    }),
  )

  it.effect("refuses an output whose extents do not fit its reshape", () =>
    Effect.gen(function* () {
      class Wide extends Model.Service<Wide>()("wide", {
        inputs: { x: Tensor.INT32(-1, -1) },
        outputs: { y: Tensor.INT32(-1, 1) },
      }) {}
      class Echo extends Model.Service<Echo>()("echo", {
        inputs: { x: Tensor.INT32(-1, -1) },
        outputs: { y: Tensor.INT32(-1, -1) },
      }) {}
      const { signature } = Wide.definition
      const inner = { ...signature, outputs: signature.outputs.map((spec) => ({ ...spec, dims: [-1] })) }
      const steps = [step("echo", { x: "x" }, { y: "y" })]
      const { model } = yield* compose(
        Wide,
        Model.each(Echo, ({ x }) => ({ y: x })),
        steps,
        { inner },
      )
      const x = Tensor.make("INT32", [2, 3], Int32Array.of(1, 2, 3, 4, 5, 6))
      const error = yield* Effect.flip(infer(model.calls, { ...request([1], 1), inputs: [x] }))
      expect([error._tag, error.message]).toEqual([
        "ExecutionFailed",
        "in ensemble 'wide', output 'y': expected INT32[-1] for its reshape, got INT32[2,3]",
      ])
    }),
  )

  it.effect("counts a failure of a step under OTHER, also for requests that the cache has joined", () =>
    Effect.gen(function* () {
      const Failing = Model.each(Twice, () => Effect.andThen(Effect.sleep("1 second"), Effect.fail(new Error("no"))))
      const { model } = yield* compose(Whole, Layer.mergeAll(Failing, PlusLive), chain, { responseCache: true })
      const call = Effect.flip(infer(model.calls, request([1], 1)))
      const calls = yield* Effect.forkChild(Effect.all([call, call], { concurrency: "unbounded" }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(calls)
      expect(model.description.statistics.failures).toEqual({ REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 2 })
    }),
  )

  const branches = [
    step("twice", { x: "x" }, { y: "y" }),
    step("plus", { x: "x" }, { y: "between" }),
    step("sum", { a: "between", b: "z" }, { y: "more" }),
  ]

  it.effect("runs only the steps of the requested outputs", () =>
    Effect.gen(function* () {
      const layer = Layer.mergeAll(TwiceLive, PlusLive, SumLive)
      const { infer: call, child } = yield* compose(Two, layer, branches)
      const successes = () => ["twice", "plus", "sum"].map((name) => child(name).description.statistics.success.count)
      expect(yield* call([1], { requestedOutputs: ["y"] })).toEqual([[2], []])
      expect(successes()).toEqual([1, 0, 0])
      expect(yield* call([1], { requestedOutputs: ["more"] })).toEqual([[], [1002]])
      expect(successes()).toEqual([1, 1, 1])
      expect(yield* call([1])).toEqual([[2], [1002]])
    }),
  )

  it.effect("may omit optional inputs of its models", () =>
    Effect.gen(function* () {
      const layer = Layer.mergeAll(TwiceLive, PlusLive, SumLive)
      const { infer: call } = yield* compose(Two, layer, branches)
      expect(yield* call([1], { inputs: [column([1]), column([5])] })).toEqual([[2], [7]])
      const needing = yield* compose(Two, layer, [
        step("twice", { x: "z" }, { y: "y" }),
        step("plus", { x: "x" }, { y: "more" }),
      ])
      expect(yield* Effect.flip(needing.infer([1], { id: "9" }))).toMatchObject({
        _tag: "InvalidRequest",
        message:
          "in ensemble 'two', [request id: 9] expected 1 inputs but got 0 inputs for model 'twice'. Got input(s) [], but " +
          "missing required input(s) ['x']. Please provide all required input(s).",
      })
    }),
  )

  it.effect("fails with the failure of its step, and takes the others back", () =>
    Effect.gen(function* () {
      const { started, ended, forever } = yield* waiting
      const Failing = Model.each(Twice, () =>
        Effect.andThen(Deferred.await(started), Effect.fail(new InvalidRequest({ message: "not that one" }))),
      )
      const {
        infer: call,
        model,
        child,
      } = yield* compose(
        Two,
        Layer.mergeAll(
          Failing,
          Model.each(Plus, () => forever),
          SumLive,
        ),
        branches,
      )
      expect(yield* Effect.flip(call([1]))).toMatchObject({
        _tag: "InvalidRequest",
        message: "in ensemble 'two', not that one",
      })
      yield* Deferred.await(ended)
      expect(model.description.statistics).toMatchObject({
        fail: { count: 1 },
        failures: { OTHER: 1 },
        executionCount: 0,
      })
      expect(child("plus").description.statistics.failures.CANCELED).toBe(1)
      yield* model.life.drained
    }),
  )

  it.effect("that is cancelled or past its deadline ends its steps", () =>
    Effect.gen(function* () {
      const first = yield* waiting
      const one = yield* compose(
        Whole,
        Layer.mergeAll(
          Model.each(Twice, () => first.forever),
          PlusLive,
        ),
        chain,
      )
      const pending = yield* Effect.forkChild(one.infer([1]))
      yield* Deferred.await(first.started)
      yield* Fiber.interrupt(pending)
      yield* Deferred.await(first.ended)
      expect(one.model.description.statistics.failures.CANCELED).toBe(1)
      yield* one.model.life.drained

      const second = yield* waiting
      const other = yield* compose(
        Whole,
        Layer.mergeAll(
          Model.each(Twice, () => second.forever),
          PlusLive,
        ),
        chain,
      )
      const late = yield* Effect.forkChild(Effect.flip(other.infer([1], { deadline: 1000 })))
      yield* Deferred.await(second.started)
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(late)).toMatchObject({
        _tag: "DeadlineExceeded",
        message: expect.stringMatching(/^in ensemble 'whole', .*Deadline Exceeded$/),
      })
      yield* Deferred.await(second.ended)
    }),
  )

  it.effect("keeps the models of its later steps until it is over", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const started = yield* Deferred.make<void>()
      const Slow = Model.each(Twice, ({ x }) =>
        Effect.andThen(Deferred.succeed(started, undefined), Effect.as(Deferred.await(go), { y: x * 2 })),
      )
      const { infer: call, child } = yield* compose(Whole, Layer.mergeAll(Slow, PlusLive), chain)
      const pending = yield* Effect.forkChild(call([1]))
      yield* Deferred.await(started)
      const released = yield* Effect.forkChild(child("plus").life.drained, { startImmediately: true })
      expect(released.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(go, undefined)
      expect(yield* Fiber.join(pending)).toEqual([[3]])
      yield* Fiber.join(released)
    }),
  )
})

describe("batches", () => {
  class Single extends Model.Service<Single>()("single", {
    inputs: { x: Tensor.INT32("n") },
    outputs: { y: Tensor.INT32("n") },
  }) {}
  class Row extends Model.Service<Row>()("row", {
    inputs: { x: Tensor.INT32(2) },
    outputs: { y: Tensor.INT32(2) },
  }) {}
  class Rows extends Model.Service<Rows>()("rows", {
    inputs: { x: Tensor.INT32(2) },
    outputs: { y: Tensor.INT32(2) },
    maxBatchSize: 4,
  }) {}

  it.effect("of one row meet models without batches, on the way in and on the way out", () =>
    Effect.gen(function* () {
      const layer = Layer.mergeAll(
        Model.each(Single, ({ x }) => ({ y: Tensor.map(x, (value) => value + 1) })),
        Model.each(Rows, ({ x }) => ({ y: Tensor.map(x, (value) => value * 10) })),
      )
      const through = [step("rows", { x: "x" }, { y: "m" }), step("single", { x: "m" }, { y: "y" })]
      const { model } = yield* compose(Row, layer, through)
      const { outputs } = yield* infer(model.calls, {
        id: "",
        inputs: [Tensor.make("INT32", [2], Int32Array.of(1, 2))],
        rows: 1,
        parameters: {},
        deadline: undefined,
      })
      expect(outputs.map((tensor) => [tensor?.shape, [...(tensor?.data ?? [])]])).toEqual([[[2], [11, 21]]])
    }),
  )
})

describe("a decoupled step", () => {
  const counted = [step("count", { x: "x" }, { y: "i" }), step("twice", { x: "i" }, { y: "y" })]

  it.effect("makes the ensemble decoupled: what follows is done for each of its responses", () =>
    Effect.gen(function* () {
      const { model, responses, child } = yield* compose(Whole, Layer.mergeAll(CountLive, TwiceLive), counted)
      expect(model.calls.decoupled).toBe(true)
      expect(yield* Stream.runCollect(responses(40))).toEqual(Array.from({ length: 40 }, (_, i) => (i + 1) * 2))
      expect(yield* Stream.runCollect(responses(0))).toEqual([])
      expect(child("twice").description.statistics.success.count).toBe(40)
      expect(model.description.statistics).toMatchObject({ success: { count: 2 }, executionCount: 2 })
      expect(model.description.statistics.responses.get(39)?.success.count).toBe(1)
      expect(model.description.statistics.responses.get(0)?.emptyResponse.count).toBe(1)
      yield* model.life.drained
    }),
  )

  it.effect("is followed by responses in its order, regardless of which is ready first", () =>
    Effect.gen(function* () {
      const last = yield* Deferred.make<void>()
      const Backwards = Model.each(
        Twice,
        ({ x }) => Effect.as(x === 3 ? Deferred.succeed(last, undefined) : Deferred.await(last), { y: x }),
        { instances: 3 },
      )
      const { responses } = yield* compose(Whole, Layer.mergeAll(CountLive, Backwards), counted)
      expect(yield* Stream.runCollect(responses(3))).toEqual([1, 2, 3])
    }),
  )

  it.effect("meets tensors that are there once, whenever they come", () =>
    Effect.gen(function* () {
      const third = yield* Deferred.make<void>()
      const Late = Model.each(Plus, ({ x }) => Effect.as(Deferred.await(third), { y: x * 100 }))
      const Noted = Model.stream(Count, ({ x }) =>
        Stream.range(1, x).pipe(
          Stream.map((y) => ({ y })),
          Stream.onEnd(Deferred.succeed(third, undefined)),
        ),
      )
      const { responses } = yield* compose(Whole, Layer.mergeAll(Noted, Late, SumLive), [
        step("count", { x: "x" }, { y: "i" }),
        step("plus", { x: "x" }, { y: "hundred" }),
        step("sum", { a: "i", b: "hundred" }, { y: "y" }),
      ])
      expect(yield* Stream.runCollect(responses(3))).toEqual([301, 302, 303])
    }),
  )

  it.effect("may be followed by another one, and answers come one group after the other", () =>
    Effect.gen(function* () {
      const { responses, model } = yield* compose(Whole, Layer.mergeAll(CountLive, TwiceLive), [
        step("count", { x: "x" }, { y: "i" }),
        step("count", { x: "i" }, { y: "j" }),
        step("twice", { x: "j" }, { y: "y" }),
      ])
      expect(yield* Stream.runCollect(responses(3))).toEqual([2, 2, 4, 2, 4, 6])
      yield* model.life.drained
    }),
  )

  it.effect("is held up while so many of its responses are on their way", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      let given = 0
      const Noted = Model.stream(Count, function* ({ x }) {
        for (let y = 1; y <= x; y++) {
          given = y
          yield { y }
        }
      })
      const reached = yield* Deferred.make<void>()
      const Slow = Model.each(
        Twice,
        ({ x }) =>
          Effect.andThen(
            x === 2 ? Deferred.succeed(reached, undefined) : Effect.void,
            Effect.as(Deferred.await(go), { y: x }),
          ),
        { instances: 8 },
      )
      const { responses } = yield* compose(Whole, Layer.mergeAll(Noted, Slow), counted, { maxInflightRequests: 2 })
      const reading = yield* Effect.forkChild(Stream.runCollect(responses(5)))
      yield* Deferred.await(reached)
      yield* TestClock.adjust("1 second")
      expect(given).toBe(2)
      yield* Deferred.succeed(go, undefined)
      expect(yield* Fiber.join(reading)).toEqual([1, 2, 3, 4, 5])
    }),
  )

  it.effect("is held up by a caller that takes nothing", () =>
    Effect.gen(function* () {
      let given = 0
      const Noted = Model.stream(Count, function* ({ x }) {
        for (let y = 1; y <= x; y++) {
          given = y
          yield { y }
        }
      })
      const { model } = yield* compose(Whole, Layer.mergeAll(Noted, TwiceLive), counted)
      const cancel = model.calls.submit({ ...request([1000], 1), emit: () => Effect.never }, () => {})
      yield* TestClock.adjust("1 second")
      expect(given).toBeGreaterThan(1)
      expect(given).toBeLessThan(20)
      cancel()
      yield* model.life.drained
    }),
  )

  it.effect("ends at the deadline of its request, also where a caller takes nothing and all steps are over", () =>
    Effect.gen(function* () {
      const { model } = yield* compose(Whole, Layer.mergeAll(CountLive, TwiceLive), counted)
      const over = yield* Deferred.make<unknown>()
      const expiring = { ...request([2], 1), deadline: 1000, emit: () => Effect.never }
      model.calls.submit(expiring, (outcome) => Deferred.doneUnsafe(over, Effect.succeed(outcome)))
      yield* TestClock.adjust("999 millis")
      expect(model.description.statistics.fail.count).toBe(0)
      yield* TestClock.adjust("1 millis")
      expect(yield* Deferred.await(over)).toMatchObject({ failure: { _tag: "DeadlineExceeded" } })
      yield* model.life.drained
    }),
  )

  it.effect("ends when the reader leaves, and when a step behind it fails", () =>
    Effect.gen(function* () {
      const Picky = Model.each(Twice, ({ x }) =>
        x === 3 ? Effect.fail(new InvalidRequest({ message: "not 3" })) : Effect.succeed({ y: x }),
      )
      const { responses, model, child } = yield* compose(Whole, Layer.mergeAll(CountLive, Picky), counted)
      expect(yield* Stream.runCollect(Stream.take(responses(2), 1))).toEqual([1])
      const seen: Array<unknown> = []
      const failed = yield* Effect.flip(Stream.runForEach(responses(1000), (y) => Effect.sync(() => seen.push(y))))
      expect(failed).toMatchObject({ _tag: "InvalidRequest", message: "in ensemble 'whole', not 3" })
      expect(seen).toEqual([1, 2])
      yield* model.life.drained
      yield* child("count").life.drained
    }),
  )

  it.effect("may be one that no request selects", () =>
    Effect.gen(function* () {
      const { model } = yield* compose(Two, Layer.mergeAll(CountLive, TwiceLive), [
        step("count", { x: "x" }, { y: "more" }),
        step("twice", { x: "x" }, { y: "y" }),
      ])
      const once = { ...request([4], 2), requestedOutputs: ["y"] }
      const responses = yield* Stream.runCollect(stream(model.calls, once))
      expect(responses.map(({ outputs }) => outputs[0]?.data[0])).toEqual([8])
      const all = yield* Stream.runCollect(stream(model.calls, request([2], 2)))
      expect(all.map(({ outputs }) => outputs.map((tensor) => tensor?.data[0]))).toEqual([
        [4, 1],
        [4, 2],
      ])
    }),
  )
})

it.effect("the outputs of several decoupled steps cannot be combined", () =>
  Effect.gen(function* () {
    const made = compose(Whole, Layer.mergeAll(CountLive, SumLive), [
      step("count", { x: "x" }, { y: "a" }),
      step("count", { x: "x" }, { y: "b" }),
      step("sum", { a: "a", b: "b" }, { y: "y" }),
    ])
    const failed = yield* Effect.flip(Effect.catchDefect(made, Effect.fail))
    expect(failed).toMatchObject({
      message: "in ensemble whole, step of model 'sum' receives inputs originated from different decoupled models",
    })
  }),
)

it.effect("a model that calls an ensemble which calls it back gets an error", () =>
  Effect.gen(function* () {
    const CallingLive = Model.each(
      Twice,
      Effect.map(
        Registry,
        (models) =>
          ({ x }) =>
            Effect.as(models.infer("whole", { x: Tensor.make("INT32", [1], Int32Array.of(x)) }), { y: x }),
      ),
    )
    const { infer: call } = yield* compose(Whole, Layer.mergeAll(CallingLive, PlusLive), chain)
    expect((yield* Effect.flip(call([1]))).message).toContain(
      "model 'twice' cannot call model 'whole', because the calls would wait for each other forever: twice → whole → twice",
    )
  }),
)
