import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Errors from "../Errors.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: { state: { SUM: Tensor.scalar("INT32"), COUNT: Tensor.scalar("INT32") } },
}) {}

it.effect("states that a handler holds do not change, whatever the later batches are", () => {
  const held: Array<readonly [given: Int32Array, copy: ReadonlyArray<number>]> = []
  const SumsLive = Model.sequenceBatch(Sums, ({ VALUE }, { state: { SUM, COUNT } }) => {
    for (const { data } of [SUM, COUNT]) held.push([data, [...data]])
    if (VALUE.data.some((value) => value < 0)) throw new Errors.InvalidRequest({ message: "no negative values" })
    const sums = SUM.data.map((sum, row) => sum + (VALUE.data[row] ?? 0))
    const counts = COUNT.data.map((count) => count + 1)
    const TOTAL = Tensor.make("INT32", VALUE.shape, sums)
    return { outputs: { TOTAL }, state: { SUM: TOTAL, COUNT: Tensor.make("INT32", VALUE.shape, counts) } }
  })
  return Effect.gen(function* () {
    const sums = yield* Sums
    const [one, other] = [yield* sums.session(), yield* sums.session()]
    const together = (...values: readonly [number, number]) =>
      Effect.map(
        Effect.all([one.infer({ VALUE: values[0] }), other.infer({ VALUE: values[1] })], { concurrency: "unbounded" }),
        (answers) => answers.map(({ TOTAL }) => TOTAL),
      )
    expect(yield* together(1, 10)).toEqual([1, 10])
    expect(yield* one.infer({ VALUE: 2 })).toEqual({ TOTAL: 3 })
    // The handler has seen the state itself, and leaves it as it was.
    yield* Effect.flip(one.infer({ VALUE: -1 }))
    expect(yield* together(3, 20)).toEqual([6, 30])
    expect(yield* together(4, 30)).toEqual([10, 60])
    expect(yield* other.infer({ VALUE: 1 })).toEqual({ TOTAL: 61 })
    expect(held.map(([given]) => [...given])).toEqual(held.map(([, copy]) => copy))
    expect(held.map(([given]) => given.length)).toEqual([2, 2, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1])
  }).pipe(Effect.provide(SumsLive), Effect.scoped)
})

it.effect("a handler reads the extents of a dim that inputs and states have", () => {
  class Rows extends Model.Service<Rows>()("rows", {
    inputs: { X: Tensor.FP32("n") },
    outputs: { Y: Tensor.FP32("n") },
    maxBatchSize: 8,
    sequence: { state: { LAST: Tensor.FP32("n") } },
  }) {}
  const extents: Array<ReadonlyArray<number>> = []
  const RowsLive = Model.sequenceBatch(Rows, ({ X }, batch) => {
    extents.push(batch.extents("n"))
    return { outputs: { Y: X }, state: { LAST: X } }
  })
  return Effect.gen(function* () {
    const rows = yield* Rows
    const sessions = [yield* rows.session(), yield* rows.session()]
    const X = Tensor.make("FP32", [3], Float32Array.of(1, 2, 3))
    for (let time = 0; time < 2; time++) {
      yield* Effect.forEach(sessions, (session) => session.infer({ X }), { concurrency: "unbounded" })
    }
    expect(extents).toEqual([
      [3, 3],
      [3, 3],
    ])
  }).pipe(Effect.provide(RowsLive), Effect.scoped)
})
