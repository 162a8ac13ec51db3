/** Unrecoverable failures: the errors that callers and the model's owner receive, for any handler. */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, type Layer, Result, Stream } from "effect"
import { Unrecoverable } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Device extends Model.Service<Device>()("device", {
  inputs: { x: Tensor.INT32(1) },
  outputs: { x: Tensor.INT32(1) },
  maxBatchSize: 2,
  batching: { onFailure: "bisect" },
}) {}

const lost = new Unrecoverable({ message: "the device is lost" })
const x = Tensor.make("INT32", [1], Int32Array.of(1))

const fail = () => {
  throw lost
}

const handlers: ReadonlyArray<readonly [string, Layer.Layer<Device>]> = [
  ["each, failing", Model.each(Device, () => Effect.fail(lost))],
  ["each, throwing", Model.each(Device, fail)],
  ["each, rejecting", Model.each(Device, async () => fail())],
  ["each, dying", Model.each(Device, () => Effect.die(lost))],
  ["each, dying behind others", Model.each(Device, () => Effect.ensuring(Effect.fail("first"), Effect.die(lost)))],
  ["batch, failing", Model.batch(Device, () => Effect.fail(lost))],
  ["batch, throwing", Model.batch(Device, fail)],
  ["batch, rejecting", Model.batch(Device, async () => fail())],
  ["batch, dying", Model.batch(Device, () => Effect.die(lost))],
  ["requests, of one of them", Model.requests(Device, (requests) => requests.map(() => Result.fail(lost)))],
  ["requests, throwing", Model.requests(Device, fail)],
]

it.effect.each(handlers)("%s: the caller has the error, and the model takes no more", ([, layer]) =>
  Effect.gen(function* () {
    const model = yield* Testing.model(layer)
    const {
      life: { isReady, unrecoverable = Effect.never },
    } = model.model
    const failure = yield* Effect.forkChild(unrecoverable)
    expect(isReady()).toBe(true)
    const error = yield* Effect.flip(model.infer({ x }))
    expect(error).toBe(lost)
    expect(error).toMatchObject({ _tag: "Unrecoverable", message: "the device is lost" })
    expect(isReady()).toBe(false)
    expect(yield* Fiber.join(failure)).toBe(lost)
    expect(yield* Effect.flip(model.infer({ x }))).toMatchObject({
      _tag: "ModelNotReady",
      message: "[request id: <id_unknown>] model 'device' has stopped accepting requests: the device is lost",
    })
    expect(yield* model.executions).toHaveLength(1)
  }),
)

it.effect("stream: so for a decoupled model, and for bind", () =>
  Effect.gen(function* () {
    class Words extends Model.Service<Words>()("words", {
      inputs: { x: Tensor.INT32(1) },
      outputs: { x: Tensor.INT32(1) },
    }) {}
    const words = yield* Testing.model(
      Model.stream(Words, async function* () {
        yield { x }
        throw lost
      }),
    )
    const seen: Array<number> = []
    const exit = yield* Effect.exit(Stream.runForEach(words.stream({ x }), () => Effect.sync(() => seen.push(1))))
    expect([exit, seen.length, words.model.life.isReady()]).toEqual([Exit.fail(lost), 1, false])

    const Bound = Model.bind(
      { name: "bound", inputs: [Tensor.INT32(1)], outputs: [Tensor.INT32(1)] },
      (): readonly [Tensor.Tensor<"INT32", readonly [number, 1]>] => fail(),
    )
    yield* Effect.gen(function* () {
      const bound = yield* Bound
      expect(yield* Effect.flip(bound.infer({ INPUT_1: x }))).toBe(lost)
      expect(bound.model.life.isReady()).toBe(false)
    }).pipe(Effect.provide(Bound.layer))
  }),
)

it.effect("refuses queued requests without another execution; running batches of other instances end", () =>
  Effect.gen(function* () {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let calls = 0
    const model = yield* Testing.model(
      Model.batch(
        Device,
        async (inputs) => {
          const call = calls++
          await gates[call]?.promise
          if (call === 0) throw lost
          return inputs
        },
        { instances: 2 },
      ),
    )
    const two = { x: Tensor.make("INT32", [2, 1], Int32Array.of(1, 2)) }
    const pending: Array<Fiber.Fiber<Result.Result<unknown, unknown>>> = []
    for (let request = 0; request < 3; request++) {
      pending.push(yield* Effect.forkChild(Effect.result(model.inferBatch(two))))
      yield* Testing.advance(0)
    }
    gates[0]?.resolve()
    yield* Testing.advance(0)
    gates[1]?.resolve()
    const [first, second, third] = yield* Effect.forEach(pending, Fiber.join)
    expect(first).toEqual(Result.fail(lost))
    expect(second).toMatchObject({ _tag: "Success" })
    expect(third).toMatchObject({ failure: { _tag: "ModelNotReady" } })
    expect(calls).toBe(2)
  }),
)

it.effect("a batch of several requests is not tried again in halves", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(Model.batch(Device, fail))
    const outcomes = yield* Effect.forEach([1, 2], () => Effect.flip(model.infer({ x })), { concurrency: "unbounded" })
    expect(outcomes).toEqual([lost, lost])
    expect(yield* model.executions).toEqual([{ rows: 2, requests: 2 }])
  }),
)

it.effect("has a separate tag", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(Model.each(Device, fail))
    const caught = Effect.catchTag(model.infer({ x }), "Unrecoverable", ({ message }) => Effect.succeed(message))
    expect(yield* caught).toBe("the device is lost")
  }),
)
