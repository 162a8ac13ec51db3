/** States that stay in the memory of their instance from one batch to the next, and are copied where they cannot. */
import { describe, expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import * as Batch from "@nereid/core/internal/batch/Batch"
import { noParameters, type Request } from "@nereid/core/internal/request/Request"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { Effect } from "effect"
import { file, initializer, model, node, value } from "../../../test/fixtures/onnx.ts"
import { Onnx } from "./index.ts"
import * as SlotBatch from "./SlotBatch.ts"
import * as Slots from "./Slots.ts"

class Hash extends Model.Service<Hash>()("hash", {
  inputs: { VALUE: Tensor.INT32(1) },
  outputs: { HASH: Tensor.INT32(1) },
  maxBatchSize: 8,
  sequence: { state: { BEFORE: Tensor.INT32(1), COUNT: Tensor.INT32(1) }, maxIdle: "1 minute" },
}) {}

/**
 * HASH = 31 * BEFORE + TABLE[VALUE] + COUNT; COUNT grows by 1. A value of 100 or more has no place in the table, and
 * fails its batch.
 */
const hash = model({
  inputs: ["VALUE", "BEFORE", "COUNT"].map((name) => value(name, "INT32", [-1, 1])),
  nodes: [
    node("Mul", ["BEFORE", "FACTOR"], ["scaled"]),
    node("Add", ["scaled", "COUNT"], ["counted"]),
    node("Gather", ["TABLE", "VALUE"], ["found"]),
    node("Add", ["counted", "found"], ["HASH"]),
    node("Identity", ["HASH"], ["AFTER"]),
    node("Add", ["COUNT", "ONE"], ["COUNT_AFTER"]),
  ],
  outputs: ["HASH", "AFTER", "COUNT_AFTER"].map((name) => value(name, "INT32", [-1, 1])),
  initializers: [
    initializer("FACTOR", "INT32", [1], Int32Array.of(31)),
    initializer("ONE", "INT32", [1], Int32Array.of(1)),
    initializer(
      "TABLE",
      "INT32",
      [100],
      Int32Array.from({ length: 100 }, (_, index) => index),
    ),
  ],
})
const state = { BEFORE: "AFTER", COUNT: "COUNT_AFTER" }

const served = Effect.fnUntraced(function* (instances: number) {
  return Onnx.layer(Hash, { file: yield* file(hash), state, instances })
})

/** A session that knows what each answer must be. */
const caller = Effect.fnUntraced(function* () {
  const session = yield* (yield* Hash).session()
  let [expected, count] = [0, 0]
  return (VALUE: number) =>
    Effect.map(session.infer({ VALUE: Tensor.make("INT32", [1], Int32Array.of(VALUE)) }), ({ HASH }) => {
      expected = (Math.imul(31, expected) + VALUE + count++) | 0
      expect(HASH.data[0]).toBe(expected)
    })
})

/** Integers below `limit`, the same for the same seed. */
const random = (seed: number) => {
  let state = seed * 2_654_435_761
  return (limit: number) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    return (state >>> 8) % limit
  }
}

describe("each sequence has the result of running alone", () => {
  for (const instances of [1, 2]) {
    it.live(`while the same and other sequences share its batches, with ${instances} instances`, () =>
      Effect.gen(function* () {
        const layer = yield* served(instances)
        yield* Effect.gen(function* () {
          const callers = yield* Effect.all(Array.from({ length: 12 }, caller))
          const below = random(instances)
          for (let round = 0; round < 60; round++) {
            // Rounds of all, of the same half as before, and of any.
            const chosen = callers.filter(
              (_, index) => round % 3 === 0 || (round % 3 === 1 ? index % 2 === 0 : below(2) === 0),
            )
            yield* Effect.all(
              chosen.map((infer) => infer(below(100))),
              { concurrency: "unbounded" },
            )
          }
        }).pipe(Effect.scoped, Effect.provide(layer))
      }).pipe(Effect.scoped),
    )
  }

  it.live("without waiting for each other", () =>
    Effect.gen(function* () {
      const layer = yield* served(1)
      yield* Effect.gen(function* () {
        const callers = yield* Effect.all(Array.from({ length: 20 }, caller))
        const run = (infer: (value: number) => Effect.Effect<void, unknown>, seed: number) => {
          const below = random(seed)
          return Effect.forEach(Array.from({ length: 50 }), () => infer(below(100)))
        }
        yield* Effect.all(callers.map(run), { concurrency: "unbounded" })
      }).pipe(Effect.scoped, Effect.provide(layer))
    }).pipe(Effect.scoped),
  )

  it.live("also after a batch that failed", () =>
    Effect.gen(function* () {
      const layer = yield* served(1)
      yield* Effect.gen(function* () {
        const callers = yield* Effect.all(Array.from({ length: 4 }, caller))
        const all = (...values: ReadonlyArray<number>) =>
          Effect.all(
            callers.map((infer, index) => Effect.exit(infer(values[index] ?? 1))),
            { concurrency: "unbounded" },
          )
        yield* all()
        yield* all()
        expect((yield* all(1, 100)).every(({ _tag }) => _tag === "Failure")).toBe(true)
        expect((yield* all(2, 3)).every(({ _tag }) => _tag === "Success")).toBe(true)
        expect((yield* all(100)).every(({ _tag }) => _tag === "Failure")).toBe(true)
        expect((yield* all(100)).every(({ _tag }) => _tag === "Failure")).toBe(true)
        expect((yield* all(4, 5)).every(({ _tag }) => _tag === "Success")).toBe(true)
      }).pipe(Effect.scoped, Effect.provide(layer))
    }).pipe(Effect.scoped),
  )
})

describe("states are read where the batch before left them", () => {
  const { signature } = Hash.definition
  const int32 = (name: string) => ({ name, datatype: "INT32" as const, dims: [1], optional: false })
  const layout = Slots.layout(
    {
      inputs: [...signature.inputs, int32("BEFORE")],
      outputs: [...signature.outputs, int32("AFTER")],
      states: [{ input: "BEFORE", output: "AFTER" }],
    },
    4,
  )!
  const memory = Slots.allocate(layout)
  const other = Slots.slotOffset(layout, 1)

  const request = (bytes: Uint8Array): Request => ({
    id: "",
    inputs: [Tensor.make("INT32", [1, 1], Int32Array.of(7)), new TypedTensor("INT32", [1, 1], bytes)],
    rows: 1,
    parameters: noParameters,
    deadline: undefined,
  })
  /** The state that the batch before left in this row of the other slot. */
  const row = (index: number) => new Uint8Array(memory, other + layout.outputs[1]!.offset + 4 * index, 4)
  const isLinked = (batch: Batch.Batch) => SlotBatch.isLinked(layout, batch, memory, other)

  it("if all rows are the same", () => {
    expect(isLinked(Batch.make([0, 1, 2].map((index) => request(row(index)))))).toBe(true)
  })

  it("not if the rows have another order, or one is missing, new, or elsewhere", () => {
    for (const rows of [
      [1, 0],
      [0, 2],
      [1, 2],
    ]) {
      expect(isLinked(Batch.make(rows.map((index) => request(row(index)))))).toBe(false)
    }
    expect(isLinked(Batch.make([request(row(0)), request(new Uint8Array(4))]))).toBe(false)
    expect(SlotBatch.isLinked(layout, Batch.make([request(row(0))]), memory, Slots.slotOffset(layout, 0))).toBe(false)
  })

  it("and are not copied then", () => {
    const slot = new Uint8Array(memory, Slots.slotOffset(layout, 0), layout.slotBytes)
    row(0).set([1, 2, 3, 4])
    const batch = Batch.make([request(row(0))])
    const stateIn = () => [...slot.subarray(layout.inputs[1]!.offset, layout.inputs[1]!.offset + 4)]
    SlotBatch.write(layout, slot, batch, true)
    expect([...slot.subarray(0, 4)]).toEqual([7, 0, 0, 0])
    expect(stateIn()).toEqual([0, 0, 0, 0])
    SlotBatch.write(layout, slot, batch)
    expect(stateIn()).toEqual([1, 2, 3, 4])
  })
})
