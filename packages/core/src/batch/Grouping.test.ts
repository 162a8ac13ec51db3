/** Batches by the values of inputs and parameters: which requests share one, and requests whose rows differ. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Result, Schema } from "effect"
import { InvalidRequest } from "../error/InferenceError.ts"
import type { Parameters } from "../request/Request.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Generate extends Model.Service<Generate>()("generate", {
  inputs: {
    x: Tensor.INT32(1),
    temperature: Tensor.optional(Tensor.scalar("FP32"), { default: 1 }),
    style: Tensor.optional(Tensor.utf8()),
  },
  outputs: { y: Tensor.INT32(1) },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "5 millis", groupBy: { inputs: ["temperature", "style"], parameters: ["language"] } },
}) {}

type Inputs = (typeof Generate)["definition"]["inputs"]

const rows = (x: ReadonlyArray<number>, temperatures?: ReadonlyArray<number>): Model.InputBatch<Inputs> => ({
  x: Tensor.make("INT32", [x.length, 1], Int32Array.from(x)),
  ...(temperatures === undefined
    ? {}
    : { temperature: Tensor.make("FP32", [x.length, 1], Float32Array.from(temperatures)) }),
})

/** Sends requests concurrently; returns the contents of each batch, and each response. */
const exchange = (requests: ReadonlyArray<readonly [Model.InputBatch<Inputs>, Parameters?]>) =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const model = yield* Testing.model(
      Model.batch(Generate, ({ x }, { value, requests }) => {
        seen.push(
          `${[...x.data]} at ${value("temperature")} ${value("style") ?? "-"} ${requests[0]?.parameters["language"] ?? "-"}`,
        )
        return {
          y: Tensor.make(
            "INT32",
            x.shape,
            x.data.map((one) => one * 10),
          ),
        }
      }),
    )
    const pending = yield* Effect.forkChild(
      Effect.forEach(
        requests,
        ([batch, parameters]) => Effect.result(model.inferBatch(batch, parameters === undefined ? {} : { parameters })),
        { concurrency: "unbounded" },
      ),
    )
    yield* Testing.advance("5 millis")
    const responses = (yield* Fiber.join(pending)).map((response) =>
      Result.isSuccess(response) ? [...response.success.y.data] : response.failure.message,
    )
    return {
      seen: seen.toSorted(),
      responses,
      statistics: model.model.description.statistics,
      executions: yield* model.executions,
    }
  })

it.effect("requests share a batch where the values of the inputs agree, a default among them", () =>
  Effect.gen(function* () {
    const { seen, responses } = yield* exchange([
      [rows([1])],
      [rows([2], [0.5])],
      [rows([3], [1])],
      [rows([4, 5], [0.5, 0.5])],
    ])
    expect(seen).toEqual(["1,3 at 1 - -", "2,4,5 at 0.5 - -"])
    expect(responses).toEqual([[10], [20], [30], [40, 50]])
  }),
)

it.effect("and the parameters, by value and type, of which missing is one", () =>
  Effect.gen(function* () {
    const languages = ["de", undefined, "en", "de", 1n, "1", true, "true"]
    const { seen } = yield* exchange(
      languages.map((language, x) => [rows([x]), language === undefined ? {} : { language }] as const),
    )
    expect(seen).toEqual([
      "0,3 at 1 - de",
      "1 at 1 - -",
      "2 at 1 - en",
      "4 at 1 - 1",
      "5 at 1 - 1",
      "6 at 1 - true",
      "7 at 1 - true",
    ])
  }),
)

it.effect("distinguishes texts that concatenate alike, and an omitted input", () =>
  Effect.gen(function* () {
    class Two extends Model.Service<Two>()("two", {
      inputs: { a: Tensor.BYTES(1), b: Tensor.optional(Tensor.BYTES(2)) },
      outputs: { a: Tensor.BYTES(1) },
      maxBatchSize: 8,
      batching: { maxQueueDelay: "5 millis", groupBy: { inputs: ["a", "b"] } },
    }) {}
    const model = yield* Testing.model(Model.batch(Two, ({ a }) => ({ a })))
    const bytes = (...texts: ReadonlyArray<string>) => texts.map((text) => new TextEncoder().encode(text))
    const samples: ReadonlyArray<Model.Input<(typeof Two)["definition"]["inputs"]>> = [
      { a: Tensor.make("BYTES", [1], bytes("a")), b: Tensor.make("BYTES", [2], bytes("ab", "c")) },
      { a: Tensor.make("BYTES", [1], bytes("a")), b: Tensor.make("BYTES", [2], bytes("a", "bc")) },
      { a: Tensor.make("BYTES", [1], bytes("a")) },
      { a: Tensor.make("BYTES", [1], bytes("a")), b: Tensor.make("BYTES", [2], bytes("a", "bc")) },
    ]
    const pending = yield* Effect.forkChild(
      Effect.forEach(samples, (sample) => model.infer(sample), { concurrency: "unbounded" }),
    )
    yield* Testing.advance("5 millis")
    yield* Fiber.join(pending)
    expect((yield* model.executions).map(({ rows }) => rows).toSorted()).toEqual([1, 1, 2])
  }),
)

describe("a request whose rows differ", () => {
  it.effect("is executed in parts, each with others of its value, and answered in its order", () =>
    Effect.gen(function* () {
      const { seen, responses, statistics } = yield* exchange([
        [rows([1, 2, 3, 4], [0.5, 2, 0.5, 1])],
        [rows([5], [2])],
        [rows([6])],
      ])
      expect(seen).toEqual(["1,3 at 0.5 - -", "2,5 at 2 - -", "4,6 at 1 - -"])
      expect(responses).toEqual([[10, 20, 30, 40], [50], [60]])
      expect([
        statistics.success.count,
        statistics.queue.count,
        statistics.inferenceCount,
        statistics.executionCount,
      ]).toEqual([3, 3, 6, 3])
    }),
  )

  it.effect("has its outputs of different extents filled up where the model declares with what", () =>
    Effect.gen(function* () {
      const make = (pad: { readonly [output: string]: number }) => {
        class Repeat extends Model.Service<Repeat>()("repeat", {
          inputs: { times: Tensor.INT32(1) },
          outputs: { y: Tensor.FP32("n") },
          maxBatchSize: 4,
          batching: { groupBy: { inputs: ["times"], pad } },
        }) {}
        return Model.batch(Repeat, ({ times }) => {
          const extent = times.data[0] ?? 0
          const data = Float32Array.from({ length: times.shape[0] * extent }, () => extent)
          return { y: Tensor.make("FP32", [times.shape[0], extent], data) }
        })
      }
      const input = { times: Tensor.make("INT32", [3, 1], Int32Array.of(1, 3, 1)) }
      const padding = yield* Testing.model(make({ y: -1 }))
      const { y } = yield* padding.inferBatch(input)
      expect([y.shape, [...y.data]]).toEqual([
        [3, 3],
        [1, -1, -1, 3, 3, 3, 1, -1, -1],
      ])
      const strict = yield* Testing.model(make({}))
      expect(yield* Effect.flip(strict.inferBatch(input))).toMatchObject({
        message: expect.stringContaining("the rows of one request have different shapes, [1] and [3]"),
      })
    }),
  )

  it.effect("fails as one, and is counted once", () =>
    Effect.gen(function* () {
      const refusal = new InvalidRequest({ message: "too hot" })
      const model = yield* Testing.model(
        Model.batch(Generate, ({ x }, { value }) => {
          if ((value("temperature") ?? 0) > 1) throw refusal
          return { y: x }
        }),
      )
      const pending = yield* Effect.forkChild(Effect.result(model.inferBatch(rows([1, 2, 3], [0.5, 2, 3]))))
      yield* Testing.advance("5 millis")
      expect(yield* Fiber.join(pending)).toEqual(Result.fail(refusal))
      const { success, fail, failures } = model.model.description.statistics
      expect([success.count, fail.count, failures]).toEqual([0, 1, { REJECTED: 0, CANCELED: 0, BACKEND: 1, OTHER: 0 }])
      expect(model.model.life.pending()).toBe(0)
    }),
  )

  it.effect("is refused as one where the queue has no room for its parts, and taken back as one", () =>
    Effect.gen(function* () {
      class Narrow extends Model.Service<Narrow>()("narrow", {
        inputs: { x: Tensor.INT32(1) },
        outputs: { x: Tensor.INT32(1) },
        maxBatchSize: 8,
        batching: { maxQueueDelay: "5 millis", maxQueueSize: 2, groupBy: { inputs: ["x"] } },
      }) {}
      const model = yield* Testing.model(Model.batch(Narrow, (inputs) => inputs))
      const batch = (...x: ReadonlyArray<number>) => ({ x: Tensor.make("INT32", [x.length, 1], Int32Array.from(x)) })
      expect(yield* Effect.flip(model.inferBatch(batch(1, 2, 3)))).toMatchObject({ _tag: "QueueFull" })
      expect([model.model.life.pending(), model.model.description.statistics.failures.REJECTED]).toEqual([0, 1])
      const pending = yield* Effect.forkChild(model.inferBatch(batch(1, 2)))
      yield* Testing.advance(0)
      expect(model.model.life.pending()).toBe(2)
      yield* Fiber.interrupt(pending)
      expect([model.model.life.pending(), model.model.description.statistics.failures.CANCELED]).toEqual([0, 1])
      expect(yield* Effect.flip(model.inferBatch(batch(1, 2), { timeout: 0 }))).toMatchObject({
        _tag: "DeadlineExceeded",
      })
      expect(model.model.description.statistics.fail.count).toBe(3)
    }),
  )

  it.effect("fails where its parts have outputs of different shapes", () =>
    Effect.gen(function* () {
      class Repeat extends Model.Service<Repeat>()("repeat", {
        inputs: { times: Tensor.scalar("INT32") },
        outputs: { y: Tensor.INT32(-1) },
        maxBatchSize: 8,
        batching: { groupBy: { inputs: ["times"] } },
      }) {}
      const model = yield* Testing.model(
        Model.batch(Repeat, ({ times }, { value }) => ({
          y: Tensor.make("INT32", [times.shape[0], value("times")], new Int32Array(times.shape[0] * value("times"))),
        })),
      )
      const pending = yield* Effect.forkChild(
        Effect.flip(model.inferBatch({ times: Tensor.make("INT32", [2, 1], Int32Array.of(1, 2)) })),
      )
      yield* Testing.advance(0)
      expect((yield* Fiber.join(pending)).message).toBe(
        "output 'y' of model 'repeat': the rows of one request have different shapes, [1] and [2]",
      )
      expect([model.model.description.statistics.success.count, model.model.description.statistics.fail.count]).toEqual(
        [0, 1],
      )
    }),
  )
})

it.effect("requests: those of a batch agree too, and the parameters of a response are of all its parts", () =>
  Effect.gen(function* () {
    const seen: Array<number> = []
    const model = yield* Testing.model(
      Model.requests(Generate, (requests) => {
        seen.push(requests.length)
        return requests.map(({ inputs, setParameterUnsafe }) => {
          setParameterUnsafe(`at ${inputs.temperature.data[0]}`, inputs.x.data.length)
          return Result.succeed({ y: inputs.x })
        })
      }),
    )
    const response = yield* Effect.forkChild(
      model.inferJson({
        inputs: [
          { name: "x", datatype: "INT32", shape: [3, 1], data: [1, 2, 3] },
          { name: "temperature", datatype: "FP32", shape: [3, 1], data: [4, 5, 4] },
        ],
      }),
    )
    yield* Testing.advance("5 millis")
    expect(yield* Fiber.join(response)).toMatchObject({
      parameters: { "at 4": 2, "at 5": 1 },
      outputs: [{ name: "y", data: [1, 2, 3] }],
    })
    expect(seen).toEqual([1, 1])
  }),
)

it.effect("each: what one sample is nothing to another", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(Model.each(Generate, ({ x }) => ({ y: x })))
    const pending = yield* Effect.forkChild(model.inferBatch(rows([1, 2, 3], [1, 2, 3])))
    yield* Testing.advance("5 millis")
    yield* Fiber.join(pending)
    expect(yield* model.executions).toEqual([{ rows: 3, requests: 1 }])
  }),
)

it.effect("a value that differs between rows is not a value of the batch; extents exclude padding", () =>
  Effect.gen(function* () {
    class Mean extends Model.Service<Mean>()("mean", {
      inputs: { x: Tensor.FP32("n") },
      outputs: { y: Tensor.FP32(1) },
      maxBatchSize: 4,
      batching: { maxQueueDelay: "5 millis", padTo: [4], ragged: { n: { pad: { x: 0 } } } },
    }) {}
    const model = yield* Testing.model(
      Model.batch(Mean, ({ x }, { extents, value }) => {
        if (x.shape[1] === 1) value("x")
        const [rows, length] = x.shape
        const sum = (row: number) => x.data.subarray(row * length, (row + 1) * length).reduce((a, b) => a + b, 0)
        return {
          y: Tensor.make(
            "FP32",
            [rows, 1],
            Float32Array.from(extents("n"), (extent, row) => sum(row) / extent),
          ),
        }
      }),
    )
    const infer = (...rows: ReadonlyArray<ReadonlyArray<number>>) =>
      Effect.gen(function* () {
        const pending = yield* Effect.forkChild(
          Effect.forEach(
            rows,
            (row) => Effect.result(model.infer({ x: Tensor.make("FP32", [row.length], Float32Array.from(row)) })),
            {
              concurrency: "unbounded",
            },
          ),
        )
        yield* Testing.advance("5 millis")
        return (yield* Fiber.join(pending)).map((response) =>
          Result.isSuccess(response) ? response.success.y.data[0] : response.failure.message,
        )
      })
    expect(yield* infer([3], [1, 2, 3])).toEqual([3, 2])
    expect((yield* infer([3], [4]))[0]).toMatch(
      "Input 'x' of model 'mean' differs among the rows of the batch: see groupBy.",
    )
  }),
)

it("refuses an input or a parameter that is not there", () => {
  const declare = (groupBy: object) =>
    Model.Service()("m", {
      inputs: { x: Tensor.FP32(1) },
      outputs: {},
      parameters: { language: Schema.String },
      maxBatchSize: 2,
      batching: { groupBy },
    })
  expect(() => declare({ inputs: ["y"] })).toThrow('Model "m": groupBy names the unknown input "y"')
  expect(() => declare({ parameters: ["languages"] })).toThrow(
    'Model "m": groupBy names the undeclared parameter "languages"',
  )
  expect(() => declare({ pad: { x: 0 } })).toThrow('Model "m": groupBy.pad names the unknown output "x"')
})
