import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Count extends Model.Service<Count>()("count", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
  maxBatchSize: 2,
}) {}

/** Counts, a step in each second; records the requests of each step. */
const recorded = () => {
  const steps: Array<string> = []
  const layer = Model.iterate(
    Count,
    { state: Schema.Int, initial: () => 0 },
    ({ TO }, { state, isFirst, requests }) => {
      steps.push(requests.map(({ id }, row) => `${id}${isFirst[row] === true ? "!" : ""}`).join())
      const next = state.map((count) => count + 1)
      const result = {
        outputs: { N: Tensor.make("INT32", TO.shape, Int32Array.from(next)) },
        state: next,
        isDone: next.map((count, row) => count >= (TO.data[row] ?? 0)),
      }
      return Effect.as(Effect.sleep("1 second"), result)
    },
  )
  return { steps, layer }
}

const counted = (
  count: Model.Inference<typeof Count.definition.inputs, typeof Count.definition.outputs>,
  id: string,
  TO: number,
) =>
  Effect.forkChild(
    Effect.map(Stream.runCollect(count.stream({ TO }, { id })), (all) => all.map(({ N }) => N)),
    { startImmediately: true },
  )

describe("a model that runs its requests step by step", () => {
  it.effect("lets a request that is done leave, and one that waits take its place", () => {
    const { steps, layer } = recorded()
    return Effect.gen(function* () {
      const count = yield* Testing.model(layer)
      const a = yield* counted(count, "a", 2)
      const b = yield* counted(count, "b", 4)
      const c = yield* counted(count, "c", 1)
      yield* Testing.advance("10 seconds")
      expect(yield* Effect.all([Fiber.join(a), Fiber.join(b), Fiber.join(c)])).toEqual([[1, 2], [1, 2, 3, 4], [1]])
      expect(steps).toEqual(["a!,b!", "a,b", "b,c!", "b"])
    }).pipe(Effect.scoped)
  })

  it.effect("lets a request whose caller leaves give its place to another", () => {
    const { steps, layer } = recorded()
    return Effect.gen(function* () {
      const count = yield* Testing.model(layer)
      const a = yield* counted(count, "a", 100)
      const b = yield* counted(count, "b", 3)
      const c = yield* counted(count, "c", 2)
      yield* TestClock.adjust("1500 millis")
      yield* Fiber.interrupt(a)
      yield* Testing.advance("10 seconds")
      expect(yield* Effect.all([Fiber.join(b), Fiber.join(c)])).toEqual([
        [1, 2, 3],
        [1, 2],
      ])
      expect(steps).toEqual(["a!,b!", "a,b", "b,c!", "c"])
    }).pipe(Effect.scoped)
  })

  it.effect("joins the states of its requests, and emits only what a step says", () => {
    class Slow extends Model.Service<Slow>()("slow", {
      inputs: { X: Tensor.FP32(2) },
      outputs: { SUM: Tensor.FP32(2) },
      maxBatchSize: 4,
    }) {}
    const layer = Model.iterate(
      Slow,
      { state: { SUM_SO_FAR: Tensor.FP32(2), STEPS: Tensor.scalar("INT32") } },
      ({ X }, { state: { SUM_SO_FAR, STEPS } }) => {
        const sum = Tensor.make(
          "FP32",
          X.shape,
          X.data.map((value, index) => value + (SUM_SO_FAR.data[index] ?? 0)),
        )
        const steps = STEPS.data.map((step) => step + 1)
        const isDone = Array.from(steps, (step) => step === 3)
        return {
          outputs: { SUM: sum },
          state: { SUM_SO_FAR: sum, STEPS: Tensor.make("INT32", STEPS.shape, steps) },
          isDone,
          emits: isDone,
        }
      },
    )
    return Effect.gen(function* () {
      const slow = yield* Testing.model(layer)
      const x = (...values: [number, number]) => ({ X: Tensor.make("FP32", [2], Float32Array.of(...values)) })
      const sums = yield* Effect.all([slow.infer(x(1, 2)), slow.infer(x(10, 20))], { concurrency: "unbounded" })
      expect(sums.map(({ SUM }) => [...SUM.data])).toEqual([
        [3, 6],
        [30, 60],
      ])
      expect(yield* slow.executions).toEqual([
        { rows: 2, requests: 2 },
        { rows: 2, requests: 2 },
        { rows: 2, requests: 2 },
      ])
    }).pipe(Effect.scoped)
  })
})
