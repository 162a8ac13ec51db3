/** Batches that are filled up before ONNX Runtime has them: in slots, and by messages where their dims vary. */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect, type Layer } from "effect"
import { addSub, file, initializer, model, node, value } from "../../../test/fixtures/onnx.ts"
import { Onnx } from "./index.ts"

/** Y = X + the sum of X along an axis, so that every element identifies its batch. */
const withSum = (dims: ReadonlyArray<number | string>, axis: number) =>
  model({
    inputs: [value("X", "FP32", dims)],
    outputs: [value("Y", "FP32", dims)],
    nodes: [node("ReduceSum", ["X", "AXIS"], ["TOTAL"], { keepdims: 1 }), node("Add", ["X", "TOTAL"], ["Y"])],
    initializers: [initializer("AXIS", "INT64", [1], BigInt64Array.of(BigInt(axis)))],
  })

const using = <A, E, R, I, E2>(
  bytes: Uint8Array,
  layer: (path: string) => Layer.Layer<I, E2>,
  use: Effect.Effect<A, E, R>,
) => Effect.scoped(Effect.flatMap(file(bytes), (path) => Effect.provide(use, layer(path))))

const row = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length], Float32Array.from(values))

class Rows extends Model.Service<Rows>()("rows", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
  maxBatchSize: 8,
  batching: { padTo: [4] },
}) {}

it.live("padTo repeats the last row in the slot, and drops what comes of it", () =>
  using(
    withSum(["batch", 1], 0),
    (path) => Onnx.layer(Rows, { file: path }),
    Effect.gen(function* () {
      const rows = yield* Rows
      const { Y } = yield* rows.inferBatch({ X: Tensor.make("FP32", [3, 1], Float32Array.of(1, 2, 3)) })
      expect(Y.shape).toEqual([3, 1])
      expect([...Y.data]).toEqual([10, 11, 12])
      // Smaller than the one before, whose rows are still in the memory.
      expect([...(yield* rows.infer({ X: Tensor.make("FP32", [1], Float32Array.of(5)) })).Y.data]).toEqual([25])
      expect([...rows.model.description.statistics.batches.keys()]).toEqual([3, 1])
    }),
  ),
)

class Sequences extends Model.Service<Sequences>()("sequences", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "50 millis", preferredBatchSizes: [3], ragged: { n: { pad: { X: 100 } } } },
}) {}

it.live("requests of different lengths run together and are cut back", () =>
  using(
    withSum(["batch", "n"], 1),
    (path) => Onnx.layer(Sequences, { file: path }),
    Effect.gen(function* () {
      const sequences = yield* Sequences
      const responses = yield* Effect.forEach([row(1), row(1, 2, 3), row(1, 2)], (X) => sequences.infer({ X }), {
        concurrency: "unbounded",
      })
      expect(responses.map(({ Y }) => [...Y.data])).toEqual([[202], [7, 8, 9], [104, 105]])
      expect(sequences.model.description.statistics.executionCount).toBe(1)
    }),
  ),
)

class Texts extends Model.Service<Texts>()("texts", {
  inputs: { A: Tensor.BYTES("n") },
  outputs: { B: Tensor.BYTES("n") },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "50 millis", preferredBatchSizes: [3], ragged: { n: { pad: { A: "-" } } } },
}) {}

const texts = (...values: ReadonlyArray<string>) =>
  Tensor.make(
    "BYTES",
    [values.length],
    values.map((value) => new TextEncoder().encode(value)),
  )

it.live("texts of different lengths too, without the one that ONNX Runtime cannot take", () =>
  using(
    model({
      inputs: [value("A", "BYTES", ["batch", "n"])],
      outputs: [value("B", "BYTES", ["batch", "n"])],
      nodes: [node("Identity", ["A"], ["B"])],
    }),
    (path) => Onnx.layer(Texts, { file: path }),
    Effect.gen(function* () {
      const model = yield* Texts
      const outcomes = yield* Effect.forEach(
        [texts("a"), texts("nul \0", "b", "c"), texts("d", "e")],
        (A) =>
          Effect.match(model.infer({ A }), {
            onSuccess: ({ B }) => B.data.map((bytes) => new TextDecoder().decode(bytes)),
            onFailure: ({ _tag }) => _tag,
          }),
        { concurrency: "unbounded" },
      )
      expect(outcomes).toEqual([["a"], "InvalidRequest", ["d", "e"]])
      expect(model.model.description.statistics.executionCount).toBe(1)
    }),
  ),
)

class Lookup extends Model.Service<Lookup>()("lookup", {
  inputs: { INDEX: Tensor.INT64(1) },
  outputs: { VALUE: Tensor.FP32(1) },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "50 millis", preferredBatchSizes: [5], onFailure: "bisect" },
}) {}

it.live("a request that ONNX Runtime fails on fails alone, where its batch may be tried again", () =>
  using(
    model({
      inputs: [value("INDEX", "INT64", ["batch", 1])],
      outputs: [value("VALUE", "FP32", ["batch", 1])],
      nodes: [node("Gather", ["TABLE", "INDEX"], ["VALUE"])],
      initializers: [initializer("TABLE", "FP32", [3], Float32Array.of(10, 20, 30))],
    }),
    (path) => Onnx.layer(Lookup, { file: path }),
    Effect.gen(function* () {
      const lookup = yield* Lookup
      const outcomes = yield* Effect.forEach(
        [0n, 1n, 3n, 2n, 0n],
        (index) =>
          Effect.match(lookup.infer({ INDEX: Tensor.make("INT64", [1], BigInt64Array.of(index)) }), {
            onSuccess: ({ VALUE }) => VALUE.data[0],
            onFailure: ({ message }) => message.slice(0, 18),
          }),
        { concurrency: "unbounded" },
      )
      expect(outcomes).toEqual([10, 20, "onnx runtime error", 30, 10])
      const { executionCount, inferenceCount, failures } = lookup.model.description.statistics
      // 5 = (3 = (2) + 1) + (2): those that failed are no executions of the protocol's.
      expect([executionCount, inferenceCount, failures.BACKEND]).toEqual([2, 4, 1])
    }),
  ),
)

class Masked extends Model.Service<Masked>()("masked", {
  inputs: { A: Tensor.FP32("n"), B: Tensor.optional(Tensor.FP32("n"), { default: 100 }) },
  outputs: { SUM: Tensor.FP32("n"), DIFFERENCE: Tensor.FP32("n") },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "50 millis", preferredBatchSizes: [2], ragged: { n: {} } },
}) {}

class Offset extends Model.Service<Offset>()("offset", {
  inputs: { A: Tensor.FP32(2), B: Tensor.optional(Tensor.FP32(2), { default: 100 }) },
  outputs: { SUM: Tensor.FP32(2), DIFFERENCE: Tensor.FP32(2) },
  maxBatchSize: 8,
}) {}

it.live("an input that the file requires may be left out where it has a default", () =>
  Effect.gen(function* () {
    yield* using(
      addSub("FP32", ["batch", "n"]),
      (path) => Onnx.layer(Masked, { file: path }),
      Effect.gen(function* () {
        const masked = yield* Masked
        const responses = yield* Effect.forEach(
          [{ A: row(1) }, { A: row(1, 2), B: row(3, 4) }],
          (sample) => masked.infer(sample),
          {
            concurrency: "unbounded",
          },
        )
        expect(responses.map(({ SUM }) => [...SUM.data])).toEqual([[101], [4, 6]])
        expect(masked.model.description.statistics.executionCount).toBe(1)
      }),
    )
    yield* using(
      addSub("FP32", ["batch", 2]),
      (path) => Onnx.layer(Offset, { file: path }),
      Effect.gen(function* () {
        const offset = yield* Offset
        expect([...(yield* offset.infer({ A: Tensor.make("FP32", [2], Float32Array.of(1, 2)) })).SUM.data]).toEqual([
          101, 102,
        ])
      }),
    )
  }),
)
