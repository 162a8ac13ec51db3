import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import * as Errors from "../error/InferenceError.ts"
import { noParameters, type Request } from "../request/Request.ts"
import * as Model from "../Model.ts"
import { infer } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"

class Scale extends Model.Service<Scale>()("scale", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
  maxBatchSize: 8,
}) {}

class Single extends Model.Service<Single>()("single", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
}) {}

const sample = (value: number) => ({ x: Tensor.make("FP32", [1], Float32Array.of(value)) })

const request = (values: ReadonlyArray<number>, rest: Partial<Request> = {}): Request => ({
  id: "",
  inputs: [Tensor.make("FP32", [values.length, 1], Float32Array.from(values))],
  rows: values.length,
  parameters: noParameters,
  deadline: undefined,
  ...rest,
})

/** Multiplies `x` by the parameter `by`, which the response repeats; an error without the parameter. */
const scaled = Model.requests(Scale, (requests) =>
  requests.map(({ inputs: { x }, parameters: { by }, setParameterUnsafe }) => {
    if (typeof by !== "number") return Result.fail(new Errors.InvalidRequest({ message: "by how much?" }))
    setParameterUnsafe("by", by)
    return Result.succeed({
      y: Tensor.make(
        "FP32",
        x.shape,
        x.data.map((value) => value * by),
      ),
    })
  }),
)

it.effect("requests of one batch are answered in their order, each with its own parameters and rows", () =>
  Effect.gen(function* () {
    const { model } = yield* Scale
    const requests = [request([1, 2], { parameters: { by: 2 } }), request([3], { parameters: { by: 10 } })]
    const responses = yield* Effect.all(
      requests.map((one) => infer(model.calls, one)),
      { concurrency: "unbounded" },
    )
    expect(model.description.statistics.executionCount).toBe(1)
    expect(responses.map(({ outputs, parameters }) => [[...(outputs[0]?.data ?? [])], parameters])).toEqual([
      [[2, 4], { by: 2 }],
      [[30], { by: 10 }],
    ])
  }).pipe(Effect.provide(scaled)),
)

it.effect("a poisoned request fails alone, with its own error", () =>
  Effect.gen(function* () {
    const { infer: call, model } = yield* Scale
    const by = { parameters: { by: 2 } }
    const [one, poisoned, other] = yield* Effect.all(
      [call(sample(1), by), Effect.exit(call(sample(2))), call(sample(3), by)],
      { concurrency: "unbounded" },
    )
    expect(model.description.statistics.executionCount).toBe(1)
    expect([...one.y.data, ...other.y.data]).toEqual([2, 6])
    expect(yield* Effect.flip(poisoned)).toMatchObject({ _tag: "InvalidRequest", message: "by how much?" })
  }).pipe(Effect.provide(scaled)),
)

it.effect("a result that does not fit the signature is the failure of its request alone", () =>
  Effect.gen(function* () {
    const { infer: call } = yield* Scale
    const pending = [1, 2, 3].map((value) => Effect.exit(call(sample(value), { id: String(value) })))
    const [good, wrong, none] = yield* Effect.all(pending, { concurrency: "unbounded" })
    expect(good).toMatchObject({ _tag: "Success" })
    expect(yield* Effect.flip(wrong ?? Exit.void)).toMatchObject({
      message: "output 'y' of model 'scale': wrong length of the batch: expected 1 rows, got 2",
    })
    expect(yield* Effect.flip(none ?? Exit.void)).toMatchObject({
      message: "the handler of model 'scale' returned a value that is not a Result for request '3'",
    })
  }).pipe(
    Effect.provide(
      Model.requests(Scale, (requests) => {
        const two = Tensor.make("FP32", [2, 1], Float32Array.of(1, 2))
        const results = requests.map(({ inputs }, index) => Result.succeed({ y: index === 1 ? two : inputs.x }))
        // As a caller without types may have it.
        Reflect.set(results, 2, { y: two })
        return results
      }),
    ),
  ),
)

it.effect("fewer or more results than requests are the failure of all of them", () =>
  Effect.gen(function* () {
    const { infer: call } = yield* Scale
    const errors = yield* Effect.all([Effect.flip(call(sample(1))), Effect.flip(call(sample(2)))], {
      concurrency: "unbounded",
    })
    const message = "the handler of model 'scale' returned 1 results for a batch of 2 requests"
    expect(errors).toMatchObject([
      { _tag: "ExecutionFailed", message },
      { _tag: "ExecutionFailed", message },
    ])
  }).pipe(
    Effect.provide(
      Model.requests(Scale, ([first]) => (first === undefined ? [] : [Result.succeed({ y: first.inputs.x })])),
    ),
  ),
)

it.effect("a model without a batch dimension receives one request of one row at a time", () =>
  Effect.gen(function* () {
    const { infer: call } = yield* Single
    expect([...(yield* call(sample(3))).y.data]).toEqual([3])
  }).pipe(
    Effect.provide(
      Model.requests(Single, async (requests) => requests.map(({ inputs: { x } }) => Result.succeed({ y: x }))),
    ),
  ),
)

it.effect("an effect answers too, and its own failure is that of all requests", () =>
  Effect.gen(function* () {
    const { infer: call } = yield* Scale
    const errors = yield* Effect.all([Effect.flip(call(sample(1))), Effect.flip(call(sample(2)))], {
      concurrency: "unbounded",
    })
    expect(errors.map(({ _tag }) => _tag)).toEqual(["QueueFull", "QueueFull"])
  }).pipe(Effect.provide(Model.requests(Scale, () => Effect.fail(new Errors.QueueFull({ message: "full" }))))),
)

it.effect("the signal is aborted once all requests are cancelled", () =>
  Effect.gen(function* () {
    const aborted = yield* Deferred.make<void>()
    const layer = Model.requests(
      Scale,
      (_, { signal }) =>
        new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => {
            Deferred.doneUnsafe(aborted, Exit.void)
            reject(new Error("aborted"))
          })
        }),
    )
    yield* Effect.gen(function* () {
      const { infer: call } = yield* Scale
      const callers = [1, 2].map((value) => Effect.forkChild(call(sample(value)), { startImmediately: true }))
      const [one, other] = yield* Effect.all(callers)
      yield* TestClock.adjust(0)
      if (one !== undefined) yield* Fiber.interrupt(one)
      expect(yield* Deferred.isDone(aborted)).toBe(false)
      if (other !== undefined) yield* Fiber.interrupt(other)
      yield* Deferred.await(aborted)
    }).pipe(Effect.provide(layer))
  }),
)
