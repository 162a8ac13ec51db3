/** Checks of handler outputs against the signature: every mismatch has a distinct message, and no value is cast. */
import { expect, it } from "@effect/vitest"
import { Effect, type Layer, Result, Stream } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

class Pair extends Model.Service<Pair>()("pair", {
  inputs: { x: Tensor.FP32(2) },
  outputs: { sum: Tensor.FP32(2), text: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

const x = Tensor.make("FP32", [2], Float32Array.of(1, 2))
const text = "t"
const texts = Tensor.make("BYTES", [1, 1], [new Uint8Array(1)])
const rows = Tensor.make("FP32", [1, 2], Float32Array.of(1, 2))

const double = (shape: ReadonlyArray<number>) => Tensor.make("FP64", shape, Float64Array.of(1, 2))
const float = (...shape: ReadonlyArray<number>) =>
  Tensor.make("FP32", shape, new Float32Array(Tensor.elementCount(shape)))

type Variants<Output> = { readonly [variant: string]: (returned: Output) => Layer.Layer<Pair> }

/** Returned values, and the error message for each after "output". */
const samples: ReadonlyArray<readonly [string, unknown, string]> = [
  ["missing", { sum: x }, "'text' of model 'pair': missing: declared as BYTES[1]"],
  ["extra", { sum: x, text, more: x }, "'more' of model 'pair': not declared; expected one of 'sum', 'text'"],
  [
    "a wrong datatype",
    { sum: double([2]), text },
    "'sum' of model 'pair': wrong datatype: declared as FP32[2], got FP64[2]",
  ],
  ["a wrong rank", { sum: rows, text }, "'sum' of model 'pair': wrong rank: declared as FP32[2], got FP32[1,2]"],
  ["wrong dims", { sum: float(3), text }, "'sum' of model 'pair': wrong dims: declared as FP32[2], got FP32[3]"],
  ["no tensor", { sum: [1, 2], text }, "'sum' of model 'pair': not a tensor: declared as FP32[2], got an array"],
  ["nothing at all", undefined, "'sum' of model 'pair': missing: expected an object with 'sum', 'text', got undefined"],
]

/** As a handler without types may have it. */
type Untyped = { readonly sum: typeof x; readonly text: string }

/** Every way to answer one sample. */
const each: Variants<Untyped> = {
  "each, a value": (returned) => Model.each(Pair, () => returned),
  "each, a promise": (returned) => Model.each(Pair, () => Promise.resolve(returned)),
  "each, an effect": (returned) => Model.each(Pair, () => Effect.yieldNow.pipe(Effect.as(returned))),
  "stream, an iterator": (returned) => Model.stream(Pair, () => [returned]),
  "stream, an asynchronous iterator": (returned) =>
    Model.stream(Pair, async function* () {
      yield await Promise.resolve(returned)
    }),
  "stream, a Stream": (returned) => Model.stream(Pair, () => Stream.succeed(returned)),
}

for (const [variant, make] of Object.entries(each)) {
  it.effect.each(samples)(`${variant}: %s`, ([, returned, message]) =>
    Effect.gen(function* () {
      const model = yield* Pair
      const error = yield* Effect.flip(model.infer({ x }))
      expect(error).toMatchObject({ _tag: "ExecutionFailed", message: `output ${message}` })
    }).pipe(Effect.provide(make(returned as Untyped))),
  )
}

const batches: ReadonlyArray<readonly [string, unknown, string]> = [
  ["missing", { sum: rows }, "'text' of model 'pair': missing: declared as BYTES[1]"],
  [
    "extra",
    { sum: rows, text: texts, more: rows },
    "'more' of model 'pair': not declared; expected one of 'sum', 'text'",
  ],
  [
    "a wrong datatype",
    { sum: double([1, 2]), text: texts },
    "'sum' of model 'pair': wrong datatype: declared as FP32[-1,2], got FP64[1,2]",
  ],
  ["a wrong rank", { sum: x, text: texts }, "'sum' of model 'pair': wrong rank: declared as FP32[-1,2], got FP32[2]"],
  [
    "wrong dims",
    { sum: float(1, 3), text: texts },
    "'sum' of model 'pair': wrong dims: declared as FP32[-1,2], got FP32[1,3]",
  ],
  [
    "a wrong number of rows",
    { sum: float(2, 2), text: texts },
    "'sum' of model 'pair': wrong length of the batch: expected 1 rows, got 2",
  ],
]

type UntypedBatch = { readonly sum: typeof rows; readonly text: typeof texts }

/** Every way to answer a batch. */
const batched: Variants<UntypedBatch> = {
  "batch, a value": (returned) => Model.batch(Pair, () => returned),
  "batch, a promise": (returned) => Model.batch(Pair, () => Promise.resolve(returned)),
  "batch, an effect": (returned) => Model.batch(Pair, () => Effect.yieldNow.pipe(Effect.as(returned))),
  requests: (returned) => Model.requests(Pair, (requests) => requests.map(() => Result.succeed(returned))),
  "requests, a promise": (returned) =>
    Model.requests(Pair, async (requests) => requests.map(() => Result.succeed(returned))),
}

/** A response of a stream has any number of rows. */
const streamed: Variants<UntypedBatch> = {
  "streamBatch, an iterator": (returned) => Model.streamBatch(Pair, () => [returned]),
  "streamBatch, a Stream": (returned) => Model.streamBatch(Pair, () => Stream.succeed(returned)),
}

for (const [variant, make] of Object.entries(streamed)) {
  const cases = batches.filter(([name]) => name !== "a wrong number of rows")
  it.effect.each(cases)(`${variant}: %s`, ([, returned, message]) =>
    Effect.gen(function* () {
      const model = yield* Pair
      const error = yield* Effect.flip(model.infer({ x }))
      expect(error).toMatchObject({ _tag: "ExecutionFailed", message: `output ${message}` })
    }).pipe(Effect.provide(make(returned as UntypedBatch))),
  )
}

for (const [variant, make] of Object.entries(batched)) {
  it.effect.each(batches)(`${variant}: %s`, ([, returned, message]) =>
    Effect.gen(function* () {
      const model = yield* Pair
      const error = yield* Effect.flip(model.infer({ x }))
      expect(error).toMatchObject({ _tag: "ExecutionFailed", message: `output ${message}` })
    }).pipe(Effect.provide(make(returned as UntypedBatch))),
  )
}

const positional: ReadonlyArray<readonly [string, unknown, string]> = [
  ["missing", [rows], "'OUTPUT_2' of model 'bound': missing: declared as FP32[2]"],
  ["extra", [rows, rows, rows], "'OUTPUT_3' of model 'bound': not declared; expected one of 'OUTPUT_1', 'OUTPUT_2'"],
  [
    "a wrong datatype",
    [double([1, 2]), rows],
    "'OUTPUT_1' of model 'bound': wrong datatype: declared as FP32[-1,2], got FP64[1,2]",
  ],
  ["a wrong rank", [x, rows], "'OUTPUT_1' of model 'bound': wrong rank: declared as FP32[-1,2], got FP32[2]"],
  ["wrong dims", [float(1, 3), rows], "'OUTPUT_1' of model 'bound': wrong dims: declared as FP32[-1,2], got FP32[1,3]"],
  [
    "a wrong number of rows",
    [float(2, 2), rows],
    "'OUTPUT_1' of model 'bound': wrong length of the batch: expected 1 rows, got 2",
  ],
  ["no array", rows, "'datatype' of model 'bound': not declared; expected one of 'OUTPUT_1', 'OUTPUT_2'"],
]

it.effect.each(positional)("bind, by position: %s", ([, returned, message]) => {
  const Bound = Model.bind(
    { name: "bound", inputs: [Tensor.FP32(2)], outputs: [Tensor.FP32(2), Tensor.FP32(2)], maxBatchSize: 4 },
    // As a handler without types may have it.
    () => returned as readonly [typeof rows, typeof rows],
  )
  return Effect.gen(function* () {
    const error = yield* Effect.flip((yield* Bound).infer({ INPUT_1: x }))
    expect(error).toMatchObject({ _tag: "ExecutionFailed", message: `output ${message}` })
  }).pipe(Effect.provide(Bound.layer))
})
