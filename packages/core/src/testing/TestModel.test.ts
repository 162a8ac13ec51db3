/**
 * Models under test as users have them: each kind of layer, pipelines, bodies of the protocol; on the clock of the
 * test.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import { ModelInferRequestSchema, ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import { Effect, Fiber, Layer, Schedule, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class AddSub extends Model.Service<AddSub>()("add_sub", {
  inputs: { a: Tensor.FP32("n"), b: Tensor.FP32("n") },
  outputs: { add: Tensor.FP32("n"), sub: Tensor.FP32("n") },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "5 millis" },
}) {}

const AddSubLive = Model.batch(AddSub, ({ a, b }) =>
  Effect.succeed({
    add: Tensor.make(
      "FP32",
      a.shape,
      a.data.map((value, index) => value + (b.data[index] ?? 0)),
    ),
    sub: Tensor.make(
      "FP32",
      a.shape,
      a.data.map((value, index) => value - (b.data[index] ?? 0)),
    ),
  }),
)

const row = (value: number) => ({
  a: Tensor.make("FP32", [1], Float32Array.of(value)),
  b: Tensor.make("FP32", [1], Float32Array.of(10)),
})

it.effect("nothing at 4 ms, three rows at 5 ms, a full batch at once; in less than 100 ms (E7)", () =>
  Effect.gen(function* () {
    const started = performance.now()
    const m = yield* Testing.model(AddSubLive)
    const fs = yield* Effect.forEach([1, 2, 3], (i) => Effect.forkChild(m.infer(row(i))))
    yield* TestClock.adjust("4 millis")
    expect(yield* m.executions).toEqual([])
    yield* TestClock.adjust("1 millis")
    expect(yield* m.executions).toEqual([{ rows: 3, requests: 3 }])
    const responses = yield* Effect.forEach(fs, Fiber.join)
    expect(responses.map(({ add, sub }) => [...add.data, ...sub.data])).toEqual([
      [11, -9],
      [12, -8],
      [13, -7],
    ])
    yield* Effect.forEach([1, 2, 3, 4], (i) => m.infer(row(i)), { concurrency: "unbounded" })
    expect(yield* m.executions).toEqual([
      { rows: 3, requests: 3 },
      { rows: 4, requests: 4 },
    ])
    expect(performance.now() - started).toBeLessThan(100)
  }),
)

class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LOUD: Tensor.utf8() },
  maxBatchSize: 8,
}) {}

const ShoutLive = Model.each(Shout, ({ TEXT }) =>
  TEXT === "" ? Effect.fail("nothing to say") : Effect.as(Effect.sleep("1 second"), { LOUD: TEXT.toUpperCase() }),
)

it.effect("a handler that takes its time takes that of the test, and a request of several rows is one request", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(ShoutLive)
    const document = { inputs: [{ name: "TEXT", datatype: "BYTES", shape: [3, 1], data: ["a", "b", "c"] }] }
    const response = yield* Effect.forkChild(model.inferJson(document))
    yield* Testing.advance("999 millis")
    expect(response.pollUnsafe()).toBeUndefined()
    yield* Testing.advance("1 millis")
    expect(yield* Fiber.join(response)).toEqual({
      model_name: "shout",
      model_version: "1",
      outputs: [{ name: "LOUD", datatype: "BYTES", shape: [3, 1], data: ["A", "B", "C"] }],
    })
    expect(yield* model.executions).toEqual([{ rows: 3, requests: 1 }])
  }),
)

it.effect("a batch that fails was executed; a request that is refused was not", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(ShoutLive)
    const failed = yield* Effect.flip(model.infer({ TEXT: "" }))
    expect(failed).toMatchObject({ _tag: "ExecutionFailed", message: expect.stringContaining("nothing to say") })
    expect(yield* model.executions).toEqual([{ rows: 1, requests: 1 }])
    const document = '{"inputs":[{"name":"TEXT","datatype":"INT32","shape":[1,1],"data":[1]}]}'
    expect(yield* Effect.flip(model.inferJson(document))).toMatchObject({
      _tag: "InvalidRequest",
      message: expect.stringContaining("data-type is 'INT32', but model 'shout' expects 'BYTES'"),
    })
    expect(yield* Effect.flip(model.inferJson("{"))).toMatchObject({ _tag: "MalformedRequest" })
    expect(yield* model.executions).toHaveLength(1)
  }),
)

it.effect("messages of gRPC go in and out as bytes", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(AddSubLive)
    const message = (modelName: string) =>
      toBinary(
        ModelInferRequestSchema,
        create(ModelInferRequestSchema, {
          modelName,
          id: "7",
          inputs: ["a", "b"].map((name) => ({ name, datatype: "FP32", shape: [4n, 1n] })),
          outputs: [{ name: "sub" }],
          rawInputContents: [
            [1, 2, 3, 4],
            [10, 10, 10, 10],
          ].map((values) => new Uint8Array(Float32Array.from(values).buffer)),
        }),
      )
    const response = fromBinary(ModelInferResponseSchema, yield* model.inferProtobuf(message("add_sub")))
    expect(response).toMatchObject({ modelName: "add_sub", id: "7", outputs: [{ name: "sub", shape: [4n, 1n] }] })
    expect([...new Float32Array(response.rawOutputContents[0]?.slice().buffer ?? new ArrayBuffer())]).toEqual([
      -9, -8, -7, -6,
    ])
    expect(yield* Effect.flip(model.inferProtobuf(message("other")))).toMatchObject({ _tag: "ModelNotFound" })
    expect(yield* model.executions).toEqual([{ rows: 4, requests: 1 }])
  }),
)

class Count extends Model.Service<Count>()("count", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
}) {}

const CountLive = Model.stream(Count, ({ TO }) =>
  Stream.range(1, TO).pipe(
    Stream.map((N) => ({ N })),
    Stream.schedule(Schedule.spaced("1 second")),
  ),
)

it.effect("a decoupled model streams, response by response; over the wire by generate alone", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(CountLive)
    const typed = yield* Effect.forkChild(Stream.runCollect(model.stream({ TO: 3 })))
    yield* Testing.advance("3 seconds")
    expect(yield* Fiber.join(typed)).toEqual([{ N: 1 }, { N: 2 }, { N: 3 }])
    const generated = yield* Effect.forkChild(Stream.runCollect(model.generate({ TO: 2 })))
    yield* Testing.advance("2 seconds")
    const from = { model_name: "count", model_version: "1" }
    expect(yield* Fiber.join(generated)).toEqual([
      { ...from, N: 1 },
      { ...from, N: 2 },
    ])
    const document = { inputs: [{ name: "TO", datatype: "INT32", shape: [1], data: [1] }] }
    expect(yield* Effect.flip(model.inferJson(document))).toMatchObject({ _tag: "Unsupported" })
    expect(yield* model.executions).toEqual([
      { rows: 1, requests: 1 },
      { rows: 1, requests: 1 },
    ])
  }),
)

class Greet extends Model.Service<Greet>()("greet", {
  inputs: { NAME: Tensor.utf8() },
  outputs: { GREETING: Tensor.utf8() },
  maxBatchSize: 8,
}) {}

const GreetLive = Model.each(
  Greet,
  Effect.map(
    Shout,
    (shout) =>
      ({ NAME }) =>
        Effect.map(shout.infer({ TEXT: NAME }), ({ LOUD }) => ({ GREETING: `Hello, ${LOUD}!` })),
  ),
)

it.effect("a pipeline: the requests that share its batch share one of the model inside", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(GreetLive.pipe(Layer.provide(ShoutLive)))
    const responses = yield* Effect.forkChild(
      Effect.forEach(["Ada", "Grace", "Mary"], (NAME) => model.infer({ NAME }), { concurrency: "unbounded" }),
    )
    yield* Testing.advance("1 second")
    expect(yield* Fiber.join(responses)).toContainEqual({ GREETING: "Hello, ADA!" })
    expect(yield* model.executions).toEqual([{ rows: 3, requests: 3 }])
    expect(yield* model.executionsOf(Shout)).toEqual([{ rows: 3, requests: 3 }])
    const unknown = yield* Effect.exit(model.executionsOf(Count))
    expect(String(unknown)).toContain(
      "No model 'count' version 1 runs here, but model 'shout' version 1, model 'greet'",
    )
  }),
)

it.effect("a stub of the model inside is as good as any", () =>
  Effect.gen(function* () {
    const stub = Model.each(Shout, () => Effect.succeed({ LOUD: "WHOEVER" }))
    const model = yield* Testing.model(GreetLive.pipe(Layer.provide(stub)))
    expect(yield* model.infer({ NAME: "Ada" })).toEqual({ GREETING: "Hello, WHOEVER!" })
  }),
)

it.effect("of a layer of several models one is named, and a failure lists them", () =>
  Effect.gen(function* () {
    const layer = GreetLive.pipe(Layer.provideMerge(ShoutLive))
    const shout = yield* Testing.model(layer, Shout)
    const response = yield* Effect.forkChild(shout.infer({ TEXT: "hello" }))
    yield* Testing.advance("1 second")
    expect(yield* Fiber.join(response)).toEqual({ LOUD: "HELLO" })
    expect(yield* shout.executionsOf(Greet)).toEqual([])
    expect(String(yield* Effect.exit(Testing.model(layer)))).toContain("The layer provides shout, greet: say which")
    expect(String(yield* Effect.exit(Testing.model(Layer.empty)))).toContain("The layer provides no model.")
    // @ts-expect-error the layer does not provide it
    // @effect-diagnostics-next-line missingEffectContext:off
    const other = yield* Effect.exit(Testing.model(layer, Count))
    expect(String(other)).toContain("The layer provides no model 'count', but shout, greet.")
    // @ts-expect-error no such input
    const wrong = yield* Effect.exit(shout.infer({ text: "hello" }))
    expect(wrong).toMatchObject({ _tag: "Failure" })
  }),
)

it.effect("each is its own, and gone with its scope", () =>
  Effect.gen(function* () {
    let loaded = 0
    const load = Effect.acquireRelease(
      Effect.sync(() => {
        loaded += 1
        return ({ TEXT }: { readonly TEXT: string }) => Effect.succeed({ LOUD: TEXT })
      }),
      () => Effect.sync(() => (loaded -= 1)),
    )
    const layer = Model.each(Shout, load)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const one = yield* Testing.model(layer)
        const two = yield* Testing.model(layer)
        yield* one.infer({ TEXT: "" })
        expect([loaded, yield* one.executions, yield* two.executions]).toEqual([2, [{ rows: 1, requests: 1 }], []])
      }),
    )
    expect(loaded).toBe(0)
  }),
)

it.effect("a layer that cannot be built fails with its own error", () =>
  Effect.gen(function* () {
    const broken = Model.each(
      Shout,
      Effect.as(new ExecutionFailed({ message: "no weights" }), ({ TEXT }) => Effect.succeed({ LOUD: TEXT })),
    )
    expect(yield* Effect.flip(Testing.model(broken))).toEqual(new ExecutionFailed({ message: "no weights" }))
  }),
)
