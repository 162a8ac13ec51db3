/** Graphs with state: what one request of a sequence leaves is there for the next one. */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect, Schema } from "effect"
import { file, initializer, model, node, value } from "../../../test/fixtures/onnx.ts"
import { Onnx } from "./index.ts"

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.FP32(2) },
  outputs: { TOTAL: Tensor.FP32(2) },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "1 second", preferredBatchSizes: [2] },
  sequence: {
    state: { SUM_IN: Tensor.FP32(2) },
    initial: () => ({ SUM_IN: Tensor.make("FP32", [2], Float32Array.of(100, 200)) }),
  },
}) {}

/** TOTAL = VALUE + SUM_IN + START, and SUM_OUT is the same. */
const accumulator = model({
  inputs: [value("VALUE", "FP32", [-1, 2]), value("SUM_IN", "FP32", [-1, 2]), value("START", "FP32", [-1, 1])],
  nodes: [
    node("Add", ["VALUE", "SUM_IN"], ["added"]),
    node("Add", ["added", "START"], ["TOTAL"]),
    node("Identity", ["TOTAL"], ["SUM_OUT"]),
  ],
  outputs: [value("TOTAL", "FP32", [-1, 2]), value("SUM_OUT", "FP32", [-1, 2])],
})

/** TOTAL = VALUE + SUM_IN, and SUM_OUT is the first row of it. */
const firstRow = (width: number) =>
  model({
    inputs: [value("VALUE", "FP32", [-1, width]), value("SUM_IN", "FP32", [-1, 2])],
    nodes: [
      node("Add", ["VALUE", "SUM_IN"], ["TOTAL"]),
      node("Slice", ["TOTAL", "FIRST", "SECOND", "FIRST"], ["SUM_OUT"]),
    ],
    outputs: [value("TOTAL", "FP32", [-1, width]), value("SUM_OUT", "FP32", [-1, 2])],
    initializers: [
      initializer("FIRST", "INT64", [1], BigInt64Array.of(0n)),
      initializer("SECOND", "INT64", [1], BigInt64Array.of(1n)),
    ],
  })

const of = (...values: [number, number]) => ({ VALUE: Tensor.make("FP32", [2], Float32Array.of(...values)) })

it.live("sequences keep their own state, in shared batches", () =>
  Effect.gen(function* () {
    const path = yield* file(accumulator)
    const layer = Onnx.layer(Sums, {
      file: path,
      state: { SUM_IN: "SUM_OUT" },
      controls: { START: { kind: "START", datatype: "FP32" } },
    })
    yield* Effect.gen(function* () {
      const sums = yield* Sums
      const one = yield* sums.session()
      const other = yield* sums.session()
      const both = (a: [number, number], b: [number, number]) =>
        Effect.map(Effect.all([one.infer(of(...a)), other.infer(of(...b))], { concurrency: "unbounded" }), (totals) =>
          totals.map(({ TOTAL }) => [...TOTAL.data]),
        )
      expect(yield* both([1, 2], [10, 20])).toEqual([
        [102, 203],
        [111, 221],
      ])
      expect(yield* both([1, 2], [10, 20])).toEqual([
        [103, 205],
        [121, 241],
      ])
      expect([...sums.model.description.statistics.batches.keys()]).toEqual([2])
    }).pipe(Effect.scoped, Effect.provide(layer))
  }).pipe(Effect.scoped),
)

for (const [kind, width] of [
  ["of a fixed shape", 2],
  ["of a variable shape", -1],
] as const) {
  it.live(`a state ${kind} with fewer rows than the batch fails its requests, and leaves their states`, () =>
    Effect.gen(function* () {
      class Halves extends Model.Service<Halves>()("halves", {
        inputs: { VALUE: Tensor.FP32(width) },
        outputs: { TOTAL: Tensor.FP32(width) },
        maxBatchSize: 4,
        batching: { maxQueueDelay: "1 second", preferredBatchSizes: [2] },
        sequence: { state: { SUM_IN: Tensor.FP32(2) } },
      }) {}
      const path = yield* file(firstRow(width))
      const layer = Onnx.layer(Halves, { file: path, state: { SUM_IN: "SUM_OUT" } })
      yield* Effect.gen(function* () {
        const halves = yield* Halves
        const sessions = [yield* halves.session(), yield* halves.session()]
        const both = Effect.forEach(sessions, (session) => Effect.flip(session.infer(of(1, 2))), { concurrency: 2 })
        for (const { message } of yield* both) {
          expect(message).toContain(
            "failed to split the output state tensor 'SUM_OUT' in responses: " +
              "expected batch size of at least 2 in model output, got 1",
          )
        }
        const { TOTAL } = yield* sessions[0]!.infer(of(5, 6))
        expect([...TOTAL.data]).toEqual([5, 6])
      }).pipe(Effect.scoped, Effect.provide(layer))
    }).pipe(Effect.scoped),
  )
}

it.live("an output of the state that the graph does not have fails the load", () =>
  Effect.gen(function* () {
    const path = yield* file(accumulator)
    const layer = Onnx.layer(Sums, {
      file: path,
      state: { SUM_IN: "SUMS" },
      controls: { START: { kind: "START", datatype: "FP32" } },
    })
    const { message } = yield* Effect.flip(Effect.provide(Effect.void, layer))
    expect(message).toContain("output 'SUMS': expected FP32[-1,2], found none among 'TOTAL', 'SUM_OUT'")
  }).pipe(Effect.scoped),
)

it("wrong names and declarations are refused", () => {
  // @ts-expect-error a state that is not declared
  expect(() => Onnx.layer(Sums, { file: "x.onnx", state: { SUM_IN: "SUM_OUT", OTHER: "SUM_OUT" } })).toThrow(
    "state 'OTHER' is not declared: the states are [SUM_IN]",
  )
  // @ts-expect-error a state without its output
  expect(() => Onnx.layer(Sums, { file: "x.onnx", state: {} })).toThrow("state 'SUM_IN' has no output")
  // @ts-expect-error no state
  expect(() => Onnx.layer(Sums, { file: "x.onnx" })).toThrow("state 'SUM_IN' has no output")
  class Value extends Model.Service<Value>()("value", {
    inputs: {},
    outputs: {},
    sequence: { state: Schema.Number, initial: () => 0 },
  }) {}
  expect(() => Onnx.layer(Value, { file: "x.onnx" })).toThrow("but a Schema is declared")
  class Plain extends Model.Service<Plain>()("plain", { inputs: {}, outputs: {} }) {}
  // @ts-expect-error a model without sequences
  expect(() => Onnx.layer(Plain, { file: "x.onnx", state: { A: "B" } })).toThrow("declares no sequence")
})

it.live("a response stays as it is while later requests replace the state", () =>
  Effect.gen(function* () {
    const path = yield* file(accumulator)
    const controls = { START: { kind: "START", datatype: "FP32" } } as const
    const layer = Onnx.layer(Sums, { file: path, state: { SUM_IN: "SUM_OUT" }, controls })
    yield* Effect.gen(function* () {
      const session = yield* (yield* Sums).session()
      const totals = yield* Effect.forEach([1, 2, 3, 4], (value) => session.infer(of(value, 0)))
      expect(totals.map(({ TOTAL }) => TOTAL.data[0])).toEqual([102, 104, 107, 111])
    }).pipe(Effect.scoped, Effect.provide(layer))
  }).pipe(Effect.scoped),
)
