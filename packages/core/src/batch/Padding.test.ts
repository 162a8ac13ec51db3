/** Batches that are filled up: what their models see, and that callers see nothing of it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { BatchingOptions } from "../model/Batching.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

const delay = { maxQueueDelay: "5 millis" } as const

describe("padTo", () => {
  class Rows extends Model.Service<Rows>()("rows", {
    inputs: { x: Tensor.INT32(1) },
    outputs: { y: Tensor.INT32(1) },
    maxBatchSize: 8,
    batching: { ...delay, padTo: [4, 2] },
  }) {}

  const batchOf = (...values: ReadonlyArray<number>) => ({
    x: Tensor.make("INT32", [values.length, 1], Int32Array.from(values)),
  })

  /** Sends requests of these rows at once; what the handler has seen, and what the callers got. */
  const exchange = (...requests: ReadonlyArray<ReadonlyArray<number>>) =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<number>> = []
      const model = yield* Testing.model(
        Model.batch(Rows, ({ x }, { requests }) => {
          seen.push([...x.data])
          expect(requests.reduce((rows, request) => rows + request.rows, 0)).toBeLessThanOrEqual(x.data.length)
          return {
            y: Tensor.make(
              "INT32",
              x.shape,
              x.data.map((value) => value * 10),
            ),
          }
        }),
      )
      const pending = yield* Effect.forkChild(
        Effect.forEach(requests, (rows) => model.inferBatch(batchOf(...rows)), { concurrency: "unbounded" }),
      )
      yield* Testing.advance("5 millis")
      const responses = (yield* Fiber.join(pending)).map(({ y }) => [...y.data])
      expect(responses).toEqual(requests.map((rows) => rows.map((value) => value * 10)))
      expect(model.model.description.statistics.inferenceCount).toBe(requests.flat().length)
      return { seen, executions: yield* model.executions }
    })

  it.effect("1+2=4: the last row is repeated, and what comes of it is dropped", () =>
    Effect.gen(function* () {
      const { seen, executions } = yield* exchange([1], [2, 3])
      expect(seen).toEqual([[1, 2, 3, 3]])
      expect(executions).toEqual([{ rows: 3, requests: 2 }])
    }),
  )

  it.effect("1=2, 4=4, 5=8: to the next size, and behind the largest to maxBatchSize", () =>
    Effect.gen(function* () {
      expect((yield* exchange([1])).seen).toEqual([[1, 1]])
      expect((yield* exchange([1, 2, 3, 4])).seen).toEqual([[1, 2, 3, 4]])
      expect((yield* exchange([1, 2, 3, 4, 5])).seen).toEqual([[1, 2, 3, 4, 5, 5, 5, 5]])
    }),
  )

  it.effect("a handler that does not answer the rows that fill the batch up fails", () =>
    Effect.gen(function* () {
      const model = yield* Testing.model(
        Model.batch(Rows, () => ({ y: Tensor.make("INT32", [1, 1], Int32Array.of(1)) })),
      )
      const pending = yield* Effect.forkChild(
        Effect.flip(model.infer({ x: Tensor.make("INT32", [1], Int32Array.of(1)) })),
      )
      yield* Testing.advance("5 millis")
      expect(yield* Fiber.join(pending)).toMatchObject({
        message: "output 'y' of model 'rows': wrong length of the batch: expected 2 rows, got 1",
      })
    }),
  )
})

const tokens = (length: number, from = 1) =>
  Tensor.make(
    "INT64",
    [length],
    BigInt64Array.from({ length }, (_, index) => BigInt(from + index)),
  )

describe("ragged", () => {
  const declare = (batching: BatchingOptions<{ readonly ids: ReturnType<typeof sequence> }>) =>
    class Tokens extends Model.Service<Tokens>()("tokens", {
      inputs: { ids: sequence(), mask: Tensor.optional(Tensor.INT64("sequence")) },
      outputs: { twice: Tensor.FP32("sequence", 2), sum: Tensor.FP32(1) },
      maxBatchSize: 4,
      batching: { ...delay, ...batching },
    }) {}
  const sequence = () => Tensor.INT64("sequence")

  /** Sends sequences of these lengths concurrently; returns the shapes that the handler received. */
  const exchange = (
    batching: Parameters<typeof declare>[0],
    lengths: ReadonlyArray<number>,
    withMask: (index: number) => boolean = () => false,
  ) =>
    Effect.gen(function* () {
      const seen: Array<{ ids: ReadonlyArray<ReadonlyArray<number>>; mask: ReadonlyArray<number> | undefined }> = []
      const Tokens = declare(batching)
      const model = yield* Testing.model(
        Model.batch(Tokens, ({ ids, mask }) => {
          const [rows, length] = ids.shape
          const values = Array.from(ids.data, Number)
          const row = (index: number) => values.slice(index * length, (index + 1) * length)
          seen.push({
            ids: Array.from({ length: rows }, (_, index) => row(index)),
            mask: mask && Array.from(mask.data, Number),
          })
          return {
            twice: Tensor.make("FP32", [rows, length, 2], Float32Array.from(values.flatMap((value) => [value, value]))),
            sum: Tensor.make(
              "FP32",
              [rows, 1],
              Float32Array.from({ length: rows }, (_, index) => row(index).reduce((a, b) => a + b, 0)),
            ),
          }
        }),
      )
      const pending = yield* Effect.forkChild(
        Effect.forEach(
          lengths,
          (length, index) =>
            model.infer({
              ids: tokens(length, 10 * (index + 1)),
              ...(withMask(index) ? { mask: tokens(length) } : {}),
            }),
          { concurrency: "unbounded" },
        ),
      )
      yield* Testing.advance("5 millis")
      const responses = yield* Fiber.join(pending)
      for (const [index, { twice }] of responses.entries()) {
        expect(twice.shape).toEqual([lengths[index], 2])
        expect([...twice.data]).toEqual(
          Array.from(tokens(lengths[index] ?? 0, 10 * (index + 1)).data, Number).flatMap((value) => [value, value]),
        )
      }
      return seen
    })

  it.effect("without it, requests of different lengths do not share a batch", () =>
    Effect.gen(function* () {
      const seen = yield* exchange({}, [1, 2, 1])
      expect(seen.map(({ ids }) => ids.length).toSorted()).toEqual([1, 2])
    }),
  )

  it.effect("requests of different lengths share a batch, padded to its longest, and are cut back", () =>
    Effect.gen(function* () {
      const seen = yield* exchange({ ragged: { sequence: {} } }, [1, 3, 2])
      expect(seen).toEqual([
        {
          ids: [
            [10, 0, 0],
            [20, 21, 22],
            [30, 31, 0],
          ],
          mask: undefined,
        },
      ])
    }),
  )

  it.effect("with an element of the input's own", () =>
    Effect.gen(function* () {
      const seen = yield* exchange({ ragged: { sequence: { pad: { ids: -1n } } } }, [1, 2], () => true)
      expect(seen).toEqual([
        {
          ids: [
            [10, -1],
            [20, 21],
          ],
          mask: [1, 0, 1, 2],
        },
      ])
    }),
  )

  it.effect("buckets keep the long from the short, and pad to their extent; one beyond them is alone", () =>
    Effect.gen(function* () {
      const seen = yield* exchange({ ragged: { sequence: { buckets: [4, 2] } } }, [1, 3, 2, 5])
      const shapes = seen.map(({ ids }) => `${ids.length}x${ids[0]?.length}`)
      expect(shapes.toSorted()).toEqual(["1x4", "1x5", "2x2"])
    }),
  )

  it.effect("buckets that pad to the longest alone", () =>
    Effect.gen(function* () {
      const seen = yield* exchange({ ragged: { sequence: { buckets: [4, 8], to: "longest" } } }, [1, 3, 6])
      const shapes = seen.map(({ ids }) => `${ids.length}x${ids[0]?.length}`)
      expect(shapes.toSorted()).toEqual(["1x6", "2x3"])
    }),
  )

  it.effect("together with padTo, and never with requests of other inputs", () =>
    Effect.gen(function* () {
      const seen = yield* exchange({ ragged: { sequence: {} }, padTo: [4] }, [1, 3, 2], (index) => index === 1)
      expect(seen.map(({ ids, mask }) => [ids, mask !== undefined])).toEqual([
        [
          [
            [10, 0],
            [30, 31],
            [30, 31],
            [30, 31],
          ],
          false,
        ],
        [
          [
            [20, 21, 22],
            [20, 21, 22],
            [20, 21, 22],
            [20, 21, 22],
          ],
          true,
        ],
      ])
    }),
  )

  it.effect("an empty sequence is one", () =>
    Effect.gen(function* () {
      const seen = yield* exchange({ ragged: { sequence: {} } }, [0, 2])
      expect(seen.map(({ ids }) => ids)).toEqual([
        [
          [0, 0],
          [20, 21],
        ],
      ])
    }),
  )

  it.effect("an output that is not as long as the batch was made cannot be cut: that is an error", () =>
    Effect.gen(function* () {
      class Shorter extends Model.Service<Shorter>()("shorter", {
        inputs: { ids: Tensor.INT64("sequence") },
        outputs: { ids: Tensor.INT64("sequence") },
        maxBatchSize: 4,
        batching: { ...delay, ragged: { sequence: {} } },
      }) {}
      const model = yield* Testing.model(
        Model.batch(Shorter, ({ ids }) => ({
          ids: Tensor.make("INT64", [ids.shape[0], 1], new BigInt64Array(ids.shape[0])),
        })),
      )
      const pending = yield* Effect.forkChild(
        Effect.forEach([2, 3], (length) => Effect.flip(model.infer({ ids: tokens(length) })), {
          concurrency: "unbounded",
        }),
      )
      yield* Testing.advance("5 millis")
      expect((yield* Fiber.join(pending)).map(({ message }) => message)).toEqual(
        Array(2).fill("output 'ids' of model 'shorter': wrong dims: 'sequence' is 3 in the inputs of the batch, got 1"),
      )
    }),
  )

  it.effect("rows of one request still are of one length", () =>
    Effect.gen(function* () {
      const model = yield* Testing.model(
        Model.each(declare({ ragged: { sequence: {} } }), ({ ids }) => ({
          twice: Tensor.make("FP32", [Number(ids.data[0]), 2], new Float32Array(2 * Number(ids.data[0]))),
          sum: Tensor.make("FP32", [1], Float32Array.of(0)),
        })),
      )
      const pending = yield* Effect.forkChild(
        Effect.flip(model.inferBatch({ ids: Tensor.make("INT64", [2, 1], BigInt64Array.of(1n, 2n)) })),
      )
      yield* Testing.advance("5 millis")
      expect((yield* Fiber.join(pending)).message).toBe(
        "output 'twice' of model 'tokens': the rows of one request have different shapes, [1,2] and [2,2]",
      )
    }),
  )
})

it.effect("a model whose code sees one sample, or one request, at a time has batches of any shapes by itself", () =>
  Effect.gen(function* () {
    class Any extends Model.Service<Any>()("any", {
      inputs: { x: Tensor.FP32("n"), y: Tensor.optional(Tensor.FP32(-1)) },
      outputs: { x: Tensor.FP32("n") },
      maxBatchSize: 4,
      batching: delay,
    }) {}
    const each = yield* Testing.model(Model.each(Any, ({ x }) => ({ x })))
    const sample = (length: number) => ({ x: Tensor.make("FP32", [length], new Float32Array(length)) })
    const pending = yield* Effect.forkChild(
      Effect.forEach([1, 2, 3], (length) => each.infer(sample(length)), { concurrency: "unbounded" }),
    )
    yield* Testing.advance("5 millis")
    expect((yield* Fiber.join(pending)).map(({ x }) => x.shape)).toEqual([[1], [2], [3]])
    expect(yield* each.executions).toEqual([{ rows: 3, requests: 3 }])
  }),
)

it("refuses options that fit no model", () => {
  const declare = (batching: object, maxBatchSize = 4) =>
    Model.Service()("m", {
      inputs: { x: Tensor.INT64("n"), y: Tensor.INT64(1) },
      outputs: { x: Tensor.INT64("n") },
      maxBatchSize,
      batching,
    })
  expect(() => declare({ padTo: [5] })).toThrow('Model "m": padTo must not exceed maxBatchSize 4, but 5 was given.')
  expect(declare({ padTo: "preferred" }).definition.batching.padTo).toEqual([4])
  expect(declare({ padTo: "preferred", preferredBatchSizes: [2] }).definition.batching.padTo).toEqual([2, 4])
  expect(() => declare({ padTo: "preferred" }, 0)).toThrow("padTo requires batching: maxBatchSize is 0")
  expect(() => declare({ padTo: [0] })).toThrow("padTo must be an integer of at least 1")
  expect(() => declare({ ragged: { n: {} } }, 0)).toThrow("ragged requires batching")
  expect(() => declare({ ragged: { m: {} } })).toThrow('ragged dimension "m" is not a dimension of any input.')
  expect(() => declare({ ragged: { n: { to: "bucket" } } })).toThrow('has no buckets, but "to" is "bucket"')
  expect(() => declare({ ragged: { n: { buckets: [1.5] } } })).toThrow("must be an integer")
  expect(() => declare({ ragged: { n: { pad: { x: 1 } } } })).toThrow('cannot pad INT64 of "x" with 1')
  expect(() => declare({ ragged: { n: { pad: { y: 1n } } } })).toThrow('is not a dimension of the padded input "y"')
})
