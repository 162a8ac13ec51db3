/** What a handler returns against the signature: every way to miss it is told apart, and nothing is cast. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Model from "./Model.ts"
import * as Tensor from "./Tensor.ts"

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

/** Returned by a handler, and what is said of it behind "output". */
const samples: ReadonlyArray<readonly [string, unknown, string]> = [
  ["missing", { sum: x }, "'text' of model 'pair': missing: declared as BYTES[1]"],
  ["extra", { sum: x, text, more: x }, "'more' of model 'pair': not declared, unlike 'sum', 'text'"],
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

it.effect.each(samples)("each: %s", ([, returned, message]) =>
  Effect.gen(function* () {
    const model = yield* Pair
    const error = yield* Effect.flip(model.infer({ x }))
    expect(error).toMatchObject({ _tag: "ExecutionFailed", message: `output ${message}` })
    // As a handler without types may have it.
  }).pipe(Effect.provide(Model.each(Pair, () => returned as { readonly sum: typeof x; readonly text: string }))),
)

const batches: ReadonlyArray<readonly [string, unknown, string]> = [
  ["missing", { sum: rows }, "'text' of model 'pair': missing: declared as BYTES[1]"],
  ["extra", { sum: rows, text: texts, more: rows }, "'more' of model 'pair': not declared, unlike 'sum', 'text'"],
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

it.effect.each(batches)("batch: %s", ([, returned, message]) =>
  Effect.gen(function* () {
    const model = yield* Pair
    const error = yield* Effect.flip(model.infer({ x }))
    expect(error).toMatchObject({ _tag: "ExecutionFailed", message: `output ${message}` })
    // As a handler without types may have it.
  }).pipe(
    Effect.provide(Model.batch(Pair, () => returned as { readonly sum: typeof rows; readonly text: typeof texts })),
  ),
)
