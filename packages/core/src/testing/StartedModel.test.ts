/** The same tests as a user writes them without Effect. What a call does is TestModel.test.ts's. */
import { expect, it } from "vitest"
import { Effect, Layer, Schedule, Stream } from "effect"
import { DeadlineExceeded, ExecutionFailed } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

const fields = { inputs: { TEXT: Tensor.utf8() }, outputs: { LOUD: Tensor.utf8() }, maxBatchSize: 4 }

class Shout extends Model.Service<Shout>()("shout", { ...fields, batching: { maxQueueDelay: "5 millis" } }) {}

const ShoutLive = Model.each(Shout, ({ TEXT }) => Effect.succeed({ LOUD: TEXT.toUpperCase() }))

it("nothing at 4 ms, three rows at 5 ms, a full batch at once", async () => {
  await using model = await Testing.start(ShoutLive)
  const responses = Promise.all(["a", "b", "c"].map((TEXT) => model.infer({ TEXT })))
  await model.advance("4 millis")
  expect(model.executions).toEqual([])
  await model.advance("1 millis")
  expect(model.executions).toEqual([{ rows: 3, requests: 3 }])
  expect(await responses).toEqual([{ LOUD: "A" }, { LOUD: "B" }, { LOUD: "C" }])
  await Promise.all(["a", "b", "c", "d"].map((TEXT) => model.infer({ TEXT })))
  expect(model.executions).toHaveLength(2)
})

it("bodies of the protocol, and batches", async () => {
  await using model = await Testing.start(ShoutLive)
  const data = ["a", "b", "c", "d"]
  const document = { id: "7", inputs: [{ name: "TEXT", datatype: "BYTES", shape: [4, 1], data }] }
  expect(await model.inferJson(document)).toMatchObject({ id: "7", outputs: [{ data: ["A", "B", "C", "D"] }] })
  const texts = Tensor.make(
    "BYTES",
    [4, 1],
    data.map((text) => Buffer.from(text)),
  )
  const { LOUD } = await model.inferBatch({ TEXT: texts })
  expect(LOUD.data.map((bytes) => Buffer.from(bytes).toString())).toEqual(["A", "B", "C", "D"])
  await expect(model.inferProtobuf(Uint8Array.of(0xff))).rejects.toMatchObject({ _tag: "InvalidRequest" })
  expect(model.executions).toEqual([
    { rows: 4, requests: 1 },
    { rows: 4, requests: 1 },
  ])
})

it("an aborted call leaves the queue, and one whose time has passed fails", async () => {
  await using model = await Testing.start(ShoutLive)
  const controller = new AbortController()
  const aborted = model.infer({ TEXT: "a" }, { signal: controller.signal })
  const late = model.infer({ TEXT: "b" }, { timeout: "2 millis" })
  const patient = model.infer({ TEXT: "c" })
  controller.abort(new Error("no longer wanted"))
  await expect(aborted).rejects.toThrow("no longer wanted")
  await Promise.all([expect(late).rejects.toBeInstanceOf(DeadlineExceeded), model.advance("2 millis")])
  await model.advance("3 millis")
  expect(await patient).toEqual({ LOUD: "C" })
  expect(model.executions).toEqual([{ rows: 1, requests: 1 }])
})

class Count extends Model.Service<Count>()("count", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
}) {}

it("a decoupled model is an async iterable, and a reader that leaves stops it", async () => {
  let given = 0
  const CountLive = Model.stream(Count, ({ TO }) =>
    Stream.range(1, TO).pipe(
      Stream.map((N) => ({ N })),
      Stream.tap(() => Effect.sync(() => (given += 1))),
      Stream.schedule(Schedule.spaced("1 second")),
    ),
  )
  await using model = await Testing.start(CountLive)
  const all = Array.fromAsync(model.stream({ TO: 2 }))
  const generated = Array.fromAsync(model.generate({ TO: 1 }))
  await model.advance("3 seconds")
  expect(await all).toEqual([{ N: 1 }, { N: 2 }])
  expect(await generated).toEqual([{ model_name: "count", model_version: "1", N: 1 }])
  given = 0
  const first = async () => {
    for await (const { N } of model.stream({ TO: 1000 })) return N
    return undefined
  }
  const [one] = await Promise.all([first(), model.advance("1 second")])
  expect(one).toBe(1)
  await model.advance("1 minute")
  expect(given).toBeLessThan(10)
})

it("a pipeline gets as far as it can before time passes, and so do Promises on its way", async () => {
  class Innermost extends Model.Service<Innermost>()("0", fields) {}
  const names = ["1", "2", "3", "4", "5", "6"]
  let layer: Layer.Layer<Innermost> = Model.each(Innermost, ({ TEXT }) =>
    Effect.promise(() => Promise.resolve({ LOUD: TEXT })).pipe(Effect.delay("1 second")),
  )
  for (const name of names) {
    class Outer extends Model.Service<Outer>()(name, fields) {}
    const outer = Model.each(
      Outer,
      Effect.map(
        Innermost,
        (inner) =>
          ({ TEXT }) =>
            Effect.andThen(
              Effect.promise(() => Promise.resolve()),
              inner.infer({ TEXT }),
            ),
      ),
    )
    // Replaces the called model for the next enclosing call.
    layer = Layer.effect(Innermost, Outer).pipe(Layer.provide(outer), Layer.provide(layer))
  }
  await using model = await Testing.start(layer)
  const response = model.infer({ TEXT: "through all" })
  await model.advance("1 second")
  expect(await response).toEqual({ LOUD: "through all" })
  for (const name of ["0", ...names]) {
    expect(model.executionsOf({ definition: { name, version: "1" } }), name).toEqual([{ rows: 1, requests: 1 }])
  }
})

it("rejects with the error of a layer that cannot be built, and unloads what it has built", async () => {
  let loaded = 0
  const load = Effect.acquireRelease(
    Effect.sync(() => (loaded += 1)),
    () => Effect.sync(() => (loaded -= 1)),
  )
  const broken = Model.each(
    Shout,
    load.pipe(
      Effect.andThen(Effect.suspend(() => new ExecutionFailed({ message: `no weights for ${loaded}` }))),
      Effect.as(({ TEXT }: { readonly TEXT: string }) => Effect.succeed({ LOUD: TEXT })),
    ),
  )
  await expect(Testing.start(broken)).rejects.toThrow(new ExecutionFailed({ message: "no weights for 1" }))
  expect(loaded).toBe(0)
})

it("of several models one is named; closed twice is closed", async () => {
  const model = await Testing.start(
    Layer.mergeAll(
      ShoutLive,
      Model.each(Count, ({ TO }) => Effect.succeed({ N: TO })),
    ),
    Count,
  )
  expect(await model.infer({ TO: 3 })).toEqual({ N: 3 })
  expect(model.executionsOf(Shout)).toEqual([])
  // @ts-expect-error no such output
  expect((await model.infer({ TO: 3 })).LOUD).toBeUndefined()
  await Promise.all([model.close(), model.close()])
  await expect(model.infer({ TO: 3 })).rejects.toMatchObject({ _tag: "Unavailable" })
  // @ts-expect-error what its handler needs is not provided
  // @effect-diagnostics-next-line missingLayerContext:off
  await expect(Testing.start(Layer.effect(Shout, Count))).rejects.toThrow("Service not found")
})

const Double = Model.bind(
  { name: "double", inputs: [["X", Tensor.FP32(1)]], outputs: [["Y", Tensor.FP32(1)]], maxBatchSize: 2 },
  ([x]) => [Tensor.map(x, (value) => value * 2)],
)

it("a bound model has its types if it is also the second argument", async () => {
  await using model = await Testing.start(Double.layer, Double)
  const { Y } = await model.infer({ X: Tensor.make("FP32", [1], Float32Array.of(2)) })
  expect(Y.data).toEqual(Float32Array.of(4))
  // @ts-expect-error X is an FP32 tensor
  const wrong = model.infer({ X: "text" })
  await expect(wrong).rejects.toMatchObject({ _tag: "InvalidRequest" })
})
