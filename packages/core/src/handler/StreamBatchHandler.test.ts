/** Decoupled models that take requests of several rows: what the handler sees, and what it may respond. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as Model from "../Model.ts"
import { stream } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"

class Double extends Model.Service<Double>()("double", {
  inputs: { X: Tensor.FP32(2), BY: Tensor.optional(Tensor.FP32(1)) },
  outputs: { Y: Tensor.FP32(2) },
  maxBatchSize: 3,
}) {}

class Single extends Model.Service<Single>()("single", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { Y: Tensor.FP32(2) },
}) {}

const rows = (...values: ReadonlyArray<number>) =>
  Tensor.make("FP32", [values.length / 2, 2], Float32Array.from(values))

const responses = (
  model: { readonly calls: Parameters<typeof stream>[0] },
  inputs: ReadonlyArray<TypedTensor | undefined>,
  count: number,
) =>
  stream(model.calls, { id: "7", inputs, rows: count, parameters: {}, deadline: undefined }).pipe(
    Stream.map(({ outputs }) => outputs.map((tensor) => tensor && [tensor.shape, [...tensor.data]])),
    Stream.runCollect,
  )

/** All rows, then each row by itself. */
const apart = Model.streamBatch(Double, function* ({ X, BY }, request) {
  expect([request.rows, request.id]).toEqual([X.shape[0], "7"])
  const by = BY?.data[0] ?? 2
  yield { Y: Tensor.map(X, (x) => x * by) }
  for (let row = 0; row < request.rows; row++) yield { Y: rows(...X.data.subarray(row * 2, row * 2 + 2)) }
})

it.effect("a request of several rows is one call, with the rows along axis 0; a response has any number of rows", () =>
  Effect.gen(function* () {
    const { model } = yield* Double
    expect(yield* responses(model, [rows(1, 2, 3, 4), undefined], 2)).toEqual([
      [
        [
          [2, 2],
          [2, 4, 6, 8],
        ],
      ],
      [
        [
          [1, 2],
          [1, 2],
        ],
      ],
      [
        [
          [1, 2],
          [3, 4],
        ],
      ],
    ])
    const by = Tensor.make("FP32", [1, 1], Float32Array.of(3))
    expect(yield* responses(model, [rows(1, 2), by], 1)).toEqual([
      [
        [
          [1, 2],
          [3, 6],
        ],
      ],
      [
        [
          [1, 2],
          [1, 2],
        ],
      ],
    ])
    expect(model.description.statistics.success.count).toBe(2)
  }).pipe(Effect.provide(apart)),
)

const shown = ({ Y }: { readonly Y: TypedTensor }) => [Y.shape, [...Y.data]]

it.effect("a typed caller sends several rows in one request, and receives responses of any number of rows", () =>
  Effect.gen(function* () {
    const model = yield* Double
    const X = rows(1, 2, 3, 4)
    const expected = [
      [
        [2, 2],
        [2, 4, 6, 8],
      ],
      [
        [1, 2],
        [1, 2],
      ],
      [
        [1, 2],
        [3, 4],
      ],
    ]
    expect((yield* Stream.runCollect(model.streamBatch({ X }, { id: "7" }))).map(shown)).toEqual(expected)
    const withParameters = model.withParameters.streamBatch({ X }, { id: "7" })
    const answers = yield* Stream.runCollect(withParameters)
    expect(answers.map(({ outputs, parameters }) => [shown(outputs), parameters])).toEqual(
      expected.map((outputs) => [outputs, {}]),
    )
    expect(model.model.description.statistics.success.count).toBe(2)
  }).pipe(Effect.provide(apart)),
)

it.effect("a stream of more rows than the model takes is refused, as one request is never split", () =>
  Effect.gen(function* () {
    const model = yield* Double
    expect(yield* Effect.flip(Stream.runCollect(model.streamBatch({ X: rows(1, 2, 3, 4, 5, 6, 7, 8) })))).toMatchObject(
      {
        _tag: "InvalidRequest",
        message: "inference request batch-size must be <= 3 for 'double', got 4",
      },
    )
  }).pipe(Effect.provide(apart)),
)

it.effect("a response of several rows to one sample is an error that names the call that takes it", () =>
  Effect.gen(function* () {
    const model = yield* Double
    const X = Tensor.make("FP32", [2], Float32Array.of(1, 2))
    expect(yield* Effect.flip(Stream.runCollect(model.stream({ X })))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "output 'Y' of model 'double': a sample has 1 row, got 2; streamBatch takes any number",
    })
  }).pipe(Effect.provide(Model.streamBatch(Double, () => [{ Y: rows(1, 2, 3, 4) }]))),
)

it.effect("without batching, a typed caller streams a batch of one row", () =>
  Effect.gen(function* () {
    const model = yield* Single
    expect((yield* Stream.runCollect(model.streamBatch({ X: rows(1, 2) }))).map(shown)).toEqual([
      [
        [1, 2],
        [1, 2],
      ],
    ])
  }).pipe(Effect.provide(Model.streamBatch(Single, ({ X }) => [{ Y: X }]))),
)

it.effect("a typed caller has one row", () =>
  Effect.gen(function* () {
    const model = yield* Single
    const X = Tensor.make("FP32", [2], Float32Array.of(1, 2))
    const [one] = yield* Stream.runCollect(model.stream({ X }))
    expect([one?.Y.shape, [...(one?.Y.data ?? [])]]).toEqual([[2], [1, 2]])
  }).pipe(
    Effect.provide(
      Model.streamBatch(Single, ({ X }) => {
        expect(X.shape).toEqual([1, 2])
        return Stream.succeed({ Y: X })
      }),
    ),
  ),
)

it.effect.each([
  ["rows of another width", () => Tensor.make("FP32", [1, 3], new Float32Array(3)), /wrong dims/],
  [
    "no rows",
    () => Tensor.make("FP32", [0, 2], new Float32Array()),
    /wrong length of the batch: expected 1 rows, got 0/,
  ],
  ["no leading axis", () => Tensor.make("FP32", [2], new Float32Array(2)), /wrong rank/],
] as const)("a response with %s fails the request", ([, make, message]) =>
  Effect.gen(function* () {
    const { model } = yield* Double
    const error = yield* Effect.flip(responses(model, [rows(1, 2), undefined], 1))
    expect(error).toMatchObject({ _tag: "ExecutionFailed", message: expect.stringMatching(message) })
  }).pipe(
    Effect.provide(
      // As a handler without types may have it.
      Model.streamBatch(Double, () => [{ Y: make() as ReturnType<typeof rows> }]),
    ),
  ),
)

it.effect("without batching, a response has one row", () =>
  Effect.gen(function* () {
    const { model } = yield* Single
    const X = Tensor.make("FP32", [2], Float32Array.of(1, 2))
    expect(yield* Effect.flip(responses(model, [X], 1))).toMatchObject({
      message: expect.stringContaining("wrong length of the batch: expected 1 rows, got 2"),
    })
  }).pipe(Effect.provide(Model.streamBatch(Single, () => [{ Y: rows(1, 2, 3, 4) }]))),
)

it.effect("a reader that leaves ends the handler", () => {
  let ended = false
  const endless = Model.streamBatch(Double, function* ({ X }) {
    try {
      for (;;) yield { Y: X }
    } finally {
      ended = true
    }
  })
  return Effect.gen(function* () {
    const { model } = yield* Double
    const request = { id: "", inputs: [rows(1, 2, 3, 4), undefined], rows: 2, parameters: {}, deadline: undefined }
    const reading = Stream.runForEach(stream(model.calls, request), () => Effect.never)
    const fiber = yield* Effect.forkChild(reading, { startImmediately: true })
    yield* TestClock.adjust(1)
    yield* Fiber.interrupt(fiber)
    yield* TestClock.adjust(1)
    expect(ended).toBe(true)
  }).pipe(Effect.provide(endless))
})
