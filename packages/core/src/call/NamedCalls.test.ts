import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Result, Stream } from "effect"
import * as Model from "../Model.ts"
import { Registry } from "../lifecycle/Registry.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"
import * as NamedCalls from "./NamedCalls.ts"

class Add extends Model.Service<Add>()("add", {
  inputs: { a: Tensor.FP32("n"), b: Tensor.FP32("n") },
  outputs: { sum: Tensor.FP32("n"), difference: Tensor.FP32("n") },
  maxBatchSize: 4,
}) {}

class Plain extends Model.Service<Plain>()("plain", {
  inputs: { x: Tensor.FP32(2) },
  outputs: { y: Tensor.FP32(2) },
}) {}

class Letters extends Model.Service<Letters>()("letters", {
  inputs: { TEXT: Tensor.BYTES(1) },
  outputs: { LETTER: Tensor.BYTES(1) },
  maxBatchSize: 4,
}) {}

class Pairs extends Model.Service<Pairs>()("pairs", {
  inputs: { x: Tensor.FP32(2) },
  outputs: { y: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

/** Does with the registry what a test wants. */
class Asking extends Model.Service<Asking>()("asking", { inputs: {}, outputs: {} }) {}

const addLive = Model.batch(Add, ({ a, b }) => ({
  sum: Tensor.make(
    "FP32",
    a.shape,
    a.data.map((value, index) => value + (b.data[index] ?? 0)),
  ),
  difference: Tensor.make(
    "FP32",
    a.shape,
    a.data.map((value, index) => value - (b.data[index] ?? 0)),
  ),
}))
const plainLive = Model.each(Plain, ({ x }, { setParameter }) =>
  setParameter("kind", "plain").pipe(Effect.andThen(setParameter("tokens", 2n)), Effect.as({ y: x })),
)
const lettersLive = Model.stream(Letters, ({ TEXT }) =>
  Stream.fromIterable(TEXT.data[0] ?? []).pipe(
    Stream.map((letter) => ({ LETTER: Tensor.make("BYTES", [1], [Uint8Array.of(letter)]) })),
  ),
)

/** From inside a handler, over these models. */
const asking = Effect.fnUntraced(function* <A, E>(run: (models: Registry["Service"]) => Effect.Effect<A, E>, id = "") {
  const seen: Array<A> = []
  const live = Model.each(
    Asking,
    Effect.map(
      Registry,
      (models) => () =>
        Effect.map(run(models), (answer) => {
          seen.push(answer)
          return {}
        }),
    ),
  )
  const layer = Layer.mergeAll(live, addLive, plainLive, lettersLive)
  const model = yield* Testing.model(layer.pipe(Layer.provide(Registry.layer)), Asking)
  yield* model.infer({}, { id })
  return seen[0]
})

const pair = (...data: ReadonlyArray<number>) => Tensor.make("FP32", [data.length], Float32Array.from(data))

it.effect("a sample has no batch dimension, whether the model batches or not", () =>
  Effect.gen(function* () {
    const answers = yield* asking((models) =>
      Effect.all([models.infer("add", { a: pair(1, 2), b: pair(3, 5) }), models.infer("plain", { x: pair(1, 2) })]),
    )
    expect(answers).toEqual([{ sum: pair(4, 7), difference: pair(-2, -3) }, { y: pair(1, 2) }])
  }),
)

it.effect("a batch has one in front, whether the model batches or not", () =>
  Effect.gen(function* () {
    const rows = Tensor.make("FP32", [2, 1], Float32Array.of(1, 2))
    const row = Tensor.make("FP32", [1, 2], Float32Array.of(1, 2))
    const answers = yield* asking((models) =>
      Effect.all([models.inferBatch("add", { a: rows, b: rows }), models.inferBatch("plain", { x: row })]),
    )
    expect(answers?.[0]?.["sum"]).toEqual(Tensor.make("FP32", [2, 1], Float32Array.of(2, 4)))
    expect(answers?.[1]).toEqual({ y: row })
  }),
)

it.effect("the parameters of responses come back with the outputs", () =>
  Effect.gen(function* () {
    const answers = yield* asking((models) =>
      Effect.all([
        models.withParameters.infer("plain", { x: pair(1, 2) }),
        models.withParameters.inferBatch("plain", { x: Tensor.make("FP32", [1, 2], Float32Array.of(1, 2)) }),
        Stream.runCollect(
          models.withParameters.stream("letters", { TEXT: Tensor.make("BYTES", [1], [Uint8Array.of(7, 8)]) }),
        ),
      ]),
    )
    expect(answers?.[0]).toEqual({ outputs: { y: pair(1, 2) }, parameters: { tokens: 2n, kind: "plain" } })
    expect(answers?.[1].parameters).toEqual({ tokens: 2n, kind: "plain" })
    expect(answers?.[2].map(({ outputs: { LETTER }, parameters }) => [LETTER?.bytes.at(-1), parameters])).toEqual([
      [7, {}],
      [8, {}],
    ])
  }),
)

it.effect("only the outputs that are wanted come back, in that order", () =>
  Effect.gen(function* () {
    const one = { a: pair(1), b: pair(2) }
    const answer = yield* asking((models) => models.infer("add", one, { outputs: ["difference"] }))
    expect(Object.keys(answer ?? {})).toEqual(["difference"])
  }),
)

it.effect("a decoupled model answers by a stream", () =>
  Effect.gen(function* () {
    const TEXT = Tensor.make("BYTES", [1], [Uint8Array.of(7, 8, 9)])
    const answers = yield* asking((models) => Stream.runCollect(models.stream("letters", { TEXT })))
    expect(answers?.map(({ LETTER }) => LETTER?.bytes.at(-1))).toEqual([7, 8, 9])
  }),
)

it.effect("a stream of several rows is one request, and a response of several rows is no sample", () =>
  Effect.gen(function* () {
    const model = Model.streamBatch(Pairs, ({ x }) => [{ y: x }])
    const context = yield* Layer.build(Layer.provideMerge(model, Registry.layer))
    const { model: running } = Context.get(context, Pairs)
    const models = NamedCalls.make(() => Result.succeed(running))
    const x = Tensor.make("FP32", [2, 2], Float32Array.of(1, 2, 3, 4))
    expect(yield* Stream.runCollect(models.streamBatch("pairs", { x }))).toEqual([{ y: x }])
    const parameters = yield* Stream.runCollect(models.withParameters.streamBatch("pairs", { x }))
    expect(parameters).toEqual([{ outputs: { y: x }, parameters: {} }])
    const large = Tensor.make("FP32", [5, 2], new Float32Array(10))
    expect(yield* Effect.flip(Stream.runCollect(models.streamBatch("pairs", { x: large })))).toMatchObject({
      _tag: "InvalidRequest",
      message: expect.stringContaining("inference request batch-size must be <= 4 for 'pairs'"),
    })
  }),
)

it.effect("a response of several rows to one sample names the call that takes it", () =>
  Effect.gen(function* () {
    const two = Tensor.make("FP32", [2, 2], new Float32Array(4))
    const context = yield* Layer.build(
      Layer.provideMerge(
        Model.streamBatch(Pairs, () => [{ y: two }]),
        Registry.layer,
      ),
    )
    const models = NamedCalls.make(() => Result.succeed(Context.get(context, Pairs).model))
    expect(yield* Effect.flip(Stream.runCollect(models.stream("pairs", { x: pair(1, 2) })))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "output 'y' of model 'pairs': a sample has 1 row, got 2; streamBatch takes any number",
    })
  }),
)

it.effect("it knows which models are there and ready, and all that are served", () =>
  Effect.gen(function* () {
    const known = yield* asking((models) =>
      Effect.succeed({
        ready: [models.isReady("add"), models.isReady("add", 1), models.isReady("add", 2), models.isReady("nobody")],
        names: models.models.map(({ description: { name } }) => name).toSorted(),
      }),
    )
    expect(known).toEqual({ ready: [true, true, false, false], names: ["add", "asking", "letters", "plain"] })
  }),
)

describe("refuses mismatched inputs with the messages of the protocol", () => {
  const cases: ReadonlyArray<readonly [string, string, Parameters<Registry["Service"]["infer"]>]> = [
    ["ModelNotFound", "Request for unknown model: 'nobody' is not found", ["nobody", {}]],
    ["ModelNotFound", "Request for unknown model: 'add' version 2 is not found", ["add", {}, { version: 2 }]],
    ["InvalidRequest", "but missing required input(s) ['b']", ["add", { a: pair(1) }]],
    ["InvalidRequest", "unexpected inference input 'c' for model 'add'", ["add", { c: pair(1) }]],
    [
      "InvalidRequest",
      "inference input 'x' data-type is 'INT32', but model 'plain' expects 'FP32'",
      ["plain", { x: Tensor.make("INT32", [2], Int32Array.of(1, 2)) }],
    ],
    [
      "InvalidRequest",
      "unexpected shape for input 'x' for model 'plain'. Expected [2], got [3]",
      ["plain", { x: pair(1, 2, 3) }],
    ],
    [
      "InvalidRequest",
      "unexpected inference output 'z' for model 'plain'",
      ["plain", { x: pair(1, 2) }, { outputs: ["z"] }],
    ],
    [
      "ExecutionFailed",
      "expected a single response, got 0",
      ["letters", { TEXT: Tensor.make("BYTES", [1], [Uint8Array.of()]) }],
    ],
  ]

  it.effect.each(cases)("%s: %s", ([tag, message, call]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(asking((models) => models.infer(...call)))
      expect(failure).toMatchObject({ _tag: tag, message: expect.stringContaining(message) })
    }),
  )

  it.effect("with the id of the request that is answered, or its own", () =>
    Effect.gen(function* () {
      const refused = (options?: { readonly id: string }) =>
        Effect.map(
          Effect.flip(asking((models) => models.infer("plain", {}, options), "outer")),
          ({ message }) => /^\[request id: .*?\]/.exec(message)?.[0],
        )
      expect(yield* refused()).toBe("[request id: outer]")
      expect(yield* refused({ id: "inner" })).toBe("[request id: inner]")
    }),
  )

  it.effect("several rows for a model that does not batch", () =>
    Effect.gen(function* () {
      const x = Tensor.make("FP32", [3, 2], new Float32Array(6))
      const failure = yield* Effect.flip(asking((models) => models.inferBatch("plain", { x })))
      expect(failure).toMatchObject({
        _tag: "InvalidRequest",
        message: "inference request batch-size must be <= 1 for 'plain', got 3",
      })
    }),
  )
})
