/** Batches of more rows than their model takes. Over sockets: test/client-server.test.ts. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { InvalidRequest } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32"), name: Tensor.optional(Tensor.utf8()) },
  outputs: { y: Tensor.scalar("INT32"), name: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

const upTo = (rows: number) =>
  Tensor.make(
    "INT32",
    [rows, 1],
    Int32Array.from({ length: rows }, (_, row) => row),
  )

const TwiceLive = Model.each(Twice, ({ x, name = "?" }) => ({ y: 2 * x, name }))

it.effect("10 rows where 4 are a batch go as 4, 4 and 2, and come back in their order", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(TwiceLive)
    const names = Array.from({ length: 10 }, (_, row) => new TextEncoder().encode("n".repeat(row)))
    const { y, name } = yield* model.inferBatch({ x: upTo(10), name: Tensor.make("BYTES", [10, 1], names) })
    expect([y.shape, [...y.data]]).toEqual([
      [10, 1],
      [0, 2, 4, 6, 8, 10, 12, 14, 16, 18],
    ])
    expect(name.data.map(({ length }) => length)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect((yield* model.executions).map(({ rows }) => rows)).toEqual([4, 4, 2])
  }),
)

it.effect("an input that was left out is left out of every chunk", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(TwiceLive)
    const { name } = yield* model.inferBatch({ x: upTo(5) })
    expect(name.data.map((bytes) => new TextDecoder().decode(bytes))).toEqual(["?", "?", "?", "?", "?"])
  }),
)

it.effect("thousands of chunks that are answered at once do not go deep", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(TwiceLive)
    const { y } = yield* model.inferBatch({ x: upTo(40_000) }, { concurrentChunks: 1 })
    expect(y.data.every((value, row) => value === 2 * row)).toBe(true)
  }),
)

/** A model that fails at the row `bad`; all others wait for `open`. */
const held = Effect.fnUntraced(function* (bad: number) {
  const open = yield* Deferred.make<void>()
  const entered: Array<number> = []
  const left: Array<number> = []
  const layer = Model.each(
    Twice,
    ({ x }) =>
      Effect.gen(function* () {
        entered.push(x)
        if (x === bad) return yield* Effect.fail(new InvalidRequest({ message: `not ${x}` }))
        yield* Deferred.await(open)
        return { y: 2 * x, name: "" }
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => left.push(x)))),
    { instances: 8 },
  )
  return { model: yield* Testing.model(layer), open, entered, left }
})

it.effect.each<[number | undefined, number]>([
  [undefined, 16],
  [1, 4],
  [2, 8],
])("with concurrentChunks %s, %s of the rows are in flight at a time", ([concurrentChunks, most]) =>
  Effect.gen(function* () {
    const { model, open, entered } = yield* held(-1)
    const options = concurrentChunks === undefined ? {} : { concurrentChunks }
    const call = yield* Effect.forkChild(model.inferBatch({ x: upTo(24) }, options))
    yield* Testing.advance(0)
    expect(entered).toHaveLength(most)
    yield* Deferred.succeed(open, undefined)
    const { y } = yield* Fiber.join(call)
    expect([...y.data]).toEqual(Array.from({ length: 24 }, (_, row) => 2 * row))
  }),
)

it.effect("the first failure is that of the call; it interrupts the chunks on their way, and no more are begun", () =>
  Effect.gen(function* () {
    const { model, entered, left } = yield* held(15)
    const call = yield* Effect.forkChild(model.inferBatch({ x: upTo(24) }))
    yield* Testing.advance(0)
    expect(yield* Effect.flip(Fiber.join(call))).toEqual(new InvalidRequest({ message: "not 15" }))
    yield* Testing.advance(0)
    expect(entered.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, row) => row))
    expect(left.toSorted((a, b) => a - b)).toEqual(entered.filter((x) => x !== 15).toSorted((a, b) => a - b))
  }),
)

it.effect("interrupting the call interrupts every chunk", () =>
  Effect.gen(function* () {
    const { model, left } = yield* held(-1)
    const call = yield* Effect.forkChild(model.inferBatch({ x: upTo(9) }))
    yield* Testing.advance(0)
    yield* Fiber.interrupt(call)
    yield* Testing.advance(0)
    expect(left.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
  }),
)

it.effect("its timeout is that of the whole call", () =>
  Effect.gen(function* () {
    const layer = Model.batch(Twice, ({ x }) =>
      Effect.as(Effect.sleep("40 millis"), {
        y: x,
        name: Tensor.make("BYTES", [x.shape[0], 1], x.data.length === 0 ? [] : [...x.data].map(() => new Uint8Array())),
      }),
    )
    const model = yield* Testing.model(layer)
    const call = yield* Effect.forkChild(model.inferBatch({ x: upTo(12) }, { timeout: "100 millis" }))
    yield* Testing.advance("100 millis")
    expect(Exit.isFailure(yield* Fiber.await(call))).toBe(true)
    expect((yield* model.executions).length).toBeLessThanOrEqual(3)
  }),
)

it.effect("refuses a large batch with 0 concurrent chunks, and invalid numbers of chunks", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(TwiceLive)
    const failing = (concurrentChunks: number) =>
      Effect.map(Effect.flip(model.inferBatch({ x: upTo(5) }, { concurrentChunks })), ({ message }) => message)
    expect(yield* failing(0)).toBe("inference request batch-size must be <= 4 for 'twice', got 5")
    expect(yield* failing(-1)).toBe("concurrentChunks must be an integer of at least 0, but -1 was given")
    expect(yield* failing(0.5)).toBe("concurrentChunks must be an integer of at least 0, but 0.5 was given")
  }),
)

class Ragged extends Model.Service<Ragged>()("ragged", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.INT32("n") },
  maxBatchSize: 1,
}) {}

it.effect("chunks with outputs of different shapes are an error", () =>
  Effect.gen(function* () {
    const layer = Model.each(Ragged, ({ x }) => ({ y: Tensor.make("INT32", [x], new Int32Array(x)) }))
    const model = yield* Testing.model(layer)
    const error = yield* Effect.flip(model.inferBatch({ x: upTo(3) }))
    expect(error).toMatchObject({
      _tag: "ExecutionFailed",
      message: "output 'y' of model 'ragged': the chunks of one batch have different shapes, [0] and [1]",
    })
  }),
)
