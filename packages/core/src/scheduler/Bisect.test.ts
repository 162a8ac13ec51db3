/** Failed batches of models with `onFailure: "bisect"`: the executions, and the requests that succeed. */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, type Layer, Result, Scope } from "effect"
import { InvalidRequest } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Root extends Model.Service<Root>()("root", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "5 millis", onFailure: "bisect" },
}) {}

const poisoned = new InvalidRequest({ message: "no root" })

const roots = ({ x }: { readonly x: Tensor.Tensor<"FP32", readonly [number, 1]> }) => {
  if (x.data.some((value) => value < 0)) throw poisoned
  return { y: Tensor.make("FP32", x.shape, x.data.map(Math.sqrt)) }
}

const batchOf = (...values: ReadonlyArray<number>) => ({
  x: Tensor.make("FP32", [values.length, 1], Float32Array.from(values)),
})

/** Sends requests with these rows at once; returns their outcomes, and the rows of each execution. */
const exchange = (layer: Layer.Layer<Root>, ...requests: ReadonlyArray<ReadonlyArray<number>>) =>
  Effect.gen(function* () {
    const model = yield* Testing.model(layer)
    const pending = yield* Effect.forkChild(
      Effect.forEach(requests, (rows) => Effect.result(model.inferBatch(batchOf(...rows))), {
        concurrency: "unbounded",
      }),
    )
    yield* Testing.advance("5 millis")
    const outcomes = (yield* Fiber.join(pending)).map((outcome) =>
      Result.isSuccess(outcome) ? [...outcome.success.y.data] : outcome.failure.message,
    )
    const executed = (yield* model.executions).map(({ rows }) => rows)
    return { outcomes, executed, statistics: model.model.description.statistics }
  })

it.effect("8=4+4, 4=2+2, 2=1+1: one that is poisoned fails alone, and every execution is counted", () =>
  Effect.gen(function* () {
    const { outcomes, executed, statistics } = yield* exchange(
      Model.batch(Root, roots),
      ...[1, 4, 9, 16, 25, -1, 36, 49].map((value) => [value]),
    )
    expect(outcomes).toEqual([[1], [2], [3], [4], [5], "no root", [6], [7]])
    expect(executed).toEqual([8, 4, 4, 2, 2, 1, 1])
    expect([statistics.executionCount, statistics.inferenceCount]).toEqual([3, 7])
    expect([statistics.success.count, statistics.fail.count, statistics.failures.BACKEND]).toEqual([7, 1, 1])
  }),
)

it.effect("a request is never torn apart: its rows fail together", () =>
  Effect.gen(function* () {
    const { outcomes, executed } = yield* exchange(Model.batch(Root, roots), [1, 4], [-1, 9, 16], [25])
    expect(outcomes).toEqual([[1, 2], "no root", [5]])
    expect(executed).toEqual([6, 5, 1, 2, 3])
  }),
)

it.effect("where all fail, there are 2n - 1 executions and no more", () =>
  Effect.gen(function* () {
    const { outcomes, executed } = yield* exchange(Model.batch(Root, roots), [-1], [-2], [-3], [-4])
    expect(outcomes).toEqual(Array(4).fill("no root"))
    expect(executed).toHaveLength(7)
  }),
)

it.effect("so for promises, effects, defects, and outputs that do not fit", () =>
  Effect.gen(function* () {
    const wrong = (
      handle: Model.BatchHandler<
        (typeof Root)["definition"]["inputs"],
        (typeof Root)["definition"]["outputs"],
        InvalidRequest,
        never
      >,
    ) =>
      Effect.map(exchange(Model.batch(Root, handle), [1], [-1], [4]), ({ outcomes }) => {
        expect([outcomes[0], outcomes[2]]).toEqual([[1], [2]])
        return outcomes[1]
      })
    expect(yield* wrong(async (inputs) => roots(inputs))).toBe("no root")
    expect(yield* wrong((inputs) => Effect.try({ try: () => roots(inputs), catch: () => poisoned }))).toBe("no root")
    expect(yield* wrong((inputs) => Effect.sync(() => roots(inputs)))).toBe("no root")
    expect(
      yield* wrong(({ x }) => {
        const rows = x.data.filter((value) => value >= 0)
        return { y: Tensor.make("FP32", [rows.length, 1], rows.map(Math.sqrt)) }
      }),
    ).toBe("output 'y' of model 'root': wrong length of the batch: expected 1 rows, got 0")
  }),
)

it.effect("without it, all requests of the batch fail", () =>
  Effect.gen(function* () {
    class Plain extends Model.Service<Plain>()("plain", {
      inputs: { x: Tensor.FP32(1) },
      outputs: { y: Tensor.FP32(1) },
      maxBatchSize: 8,
      batching: { maxQueueDelay: "5 millis" },
    }) {}
    const model = yield* Testing.model(Model.batch(Plain, roots))
    const pending = yield* Effect.forkChild(
      Effect.forEach([1, -1], (value) => Effect.flip(model.inferBatch(batchOf(value))), { concurrency: "unbounded" }),
    )
    yield* Testing.advance("5 millis")
    expect(yield* Fiber.join(pending)).toEqual([poisoned, poisoned])
    expect(yield* model.executions).toHaveLength(1)
  }),
)

it.effect("a request that was cancelled meanwhile is not executed again; retried requests precede new ones", () =>
  Effect.gen(function* () {
    const gate = Promise.withResolvers<void>()
    const seen: Array<ReadonlyArray<number>> = []
    const model = yield* Testing.model(
      Model.batch(Root, async (inputs) => {
        seen.push([...inputs.x.data])
        if (seen.length === 1) await gate.promise
        return roots(inputs)
      }),
    )
    const infer = (value: number) => Effect.forkChild(Effect.result(model.inferBatch(batchOf(value))))
    const [leaves, fails, stays] = [yield* infer(1), yield* infer(-1), yield* infer(4)]
    yield* Testing.advance("5 millis")
    const late = yield* infer(9)
    yield* Testing.advance("5 millis")
    yield* Fiber.interrupt(leaves)
    gate.resolve()
    yield* Testing.advance(0)
    expect(seen).toEqual([[1, -1, 4], [-1], [4], [9]])
    expect(yield* Fiber.join(fails)).toMatchObject({ failure: poisoned })
    expect([yield* Fiber.join(stays), yield* Fiber.join(late)].every(Result.isSuccess)).toBe(true)
  }),
)

it.effect("a model that unloads does not try again", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const model = yield* Scope.provide(
      Testing.model(
        Model.batch(Root, () =>
          Effect.uninterruptible(Effect.andThen(Effect.sleep("1 second"), Effect.fail(poisoned))),
        ),
      ),
      scope,
    )
    const pending = yield* Effect.forkChild(
      Effect.forEach([1, 2], (value) => Effect.flip(model.inferBatch(batchOf(value))), { concurrency: "unbounded" }),
    )
    yield* Testing.advance("5 millis")
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* Testing.advance("1 second")
    yield* Fiber.join(closing)
    expect(yield* Fiber.join(pending)).toEqual([poisoned, poisoned])
    expect(yield* model.executions).toHaveLength(1)
  }),
)
