/** Warm-up of instances before the model takes requests: it does not count in the statistics, and its failures. */
import { expect, it } from "@effect/vitest"
import { Data, Deferred, Effect, Exit, Fiber, Layer, Logger, References, Result, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as DataType from "../tensor/DataType.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"
import { WarmUpFailed } from "./WarmUpFailed.ts"
import * as WarmUpInput from "../synthetic/SyntheticTensor.ts"

class Scale extends Model.Service<Scale>()("scale", {
  inputs: { x: Tensor.FP32("n", 2), by: Tensor.optional(Tensor.FP32(1)) },
  outputs: { y: Tensor.FP32("n", 2) },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "1 minute" },
}) {}

class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LOUD: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

/** A layer of Scale, and the shapes and values that its instances were called with. */
const scaling = (options: Model.HandlerOptions<(typeof Scale)["definition"]["inputs"]>) => {
  const calls: Array<{ readonly shape: ReadonlyArray<number>; readonly data: ReadonlyArray<number>; by: boolean }> = []
  const layer = Model.batch(
    Scale,
    ({ x, by }) => {
      calls.push({ shape: x.shape, data: [...x.data], by: by !== undefined })
      return { y: x }
    },
    options,
  )
  return { calls, layer }
}

it.effect("zeros of the signature, one row, once per instance, without what is optional and without a delay", () =>
  Effect.gen(function* () {
    const { calls, layer } = scaling({ warmUp: "zeros", instances: 2 })
    const model = yield* Testing.model(layer, Scale)
    const one = { shape: [1, 1, 2], data: [0, 0], by: false }
    expect(calls).toEqual([one, one])
    const {
      description: { statistics },
    } = model.model
    expect([statistics.success.count, statistics.inferenceCount, statistics.executionCount]).toEqual([0, 0, 0])
    expect([statistics.lastInference, statistics.batches.size, statistics.queue.count]).toEqual([0, 0, 0])
    expect(yield* model.executions).toEqual([])
    expect(model.model.life.isReady()).toBe(true)
  }),
)

it.effect("logs each execution at the level Debug, with the name or the number of the warm-up", () =>
  Effect.gen(function* () {
    const messages: Array<unknown> = []
    const logger = Logger.make(({ message }) => void messages.push(...(Array.isArray(message) ? message : [message])))
    const { layer } = scaling({ warmUp: ["zeros", { name: "noise", inputs: "random", count: 2 }] })
    yield* Testing.model(layer).pipe(
      Effect.provide(Logger.layer([logger])),
      Effect.provideService(References.MinimumLogLevel, "Debug"),
    )
    expect(messages).toEqual([
      "model 'scale' instance scale_0 is running warmup sample '0' for iteration 1",
      "model 'scale' instance scale_0 is running warmup sample 'noise' for iteration 1",
      "model 'scale' instance scale_0 is running warmup sample 'noise' for iteration 2",
    ])
  }),
)

it.effect("zeros and random values by input, of an optional one only if it is named", () =>
  Effect.gen(function* () {
    const random = scaling({ warmUp: { inputs: { x: "random", by: "zeros" } } })
    yield* Testing.model(random.layer)
    expect(random.calls).toMatchObject([{ shape: [1, 1, 2], by: true }])
    expect(random.calls[0]?.data.every((value) => value > 0)).toBe(true)
    const zeros = scaling({ warmUp: { inputs: { by: "random" } } })
    yield* Testing.model(zeros.layer)
    expect(zeros.calls).toEqual([{ shape: [1, 1, 2], data: [0, 0], by: true }])
  }),
)

it.effect("random values at given sizes, several batch sizes, several times: the same at each start", () =>
  Effect.gen(function* () {
    const warmUp = { inputs: "random", sizes: { n: 3 }, batchSize: [1, 4], count: 2 } as const
    const [first, second] = [scaling({ warmUp }), scaling({ warmUp })]
    yield* Testing.model(first.layer)
    yield* Testing.model(second.layer)
    expect(first.calls.map(({ shape }) => shape)).toEqual([
      [1, 3, 2],
      [4, 3, 2],
      [1, 3, 2],
      [4, 3, 2],
    ])
    const values = first.calls.flatMap(({ data }) => data)
    expect(new Set(values).size).toBeGreaterThan(20)
    expect(values.every((value) => value >= 0 && value < 1)).toBe(true)
    expect(second.calls).toEqual(first.calls)
  }),
)

it.effect("samples are decoded, and share batches", () =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const sizes: Array<number> = []
    const layer = Model.requests(
      Shout,
      (requests) => {
        sizes.push(requests.length)
        const texts = requests.map(({ inputs }) => new TextDecoder().decode(inputs.TEXT.data[0]))
        seen.push(...texts)
        return requests.map(({ inputs }) => Result.succeed({ LOUD: inputs.TEXT }))
      },
      { warmUp: { inputs: [{ TEXT: "a" }, { TEXT: "b" }, { TEXT: "c" }] } },
    )
    yield* Testing.model(layer)
    expect(seen).toEqual(["a", "b", "c"])
    expect(sizes).toEqual([3])
  }),
)

it.effect("executes several warm-ups in sequence, each with its batch sizes", () =>
  Effect.gen(function* () {
    const { calls, layer } = scaling({
      warmUp: [
        { inputs: [{ x: Tensor.make("FP32", [1, 2], Float32Array.of(5, 7)) }], batchSize: [3, 1], count: 2 },
        "zeros",
        { inputs: "random", batchSize: 4 },
      ],
    })
    yield* Testing.model(layer)
    const [three, one] = [3, 1].map((rows) => ({
      shape: [rows, 1, 2],
      data: Array.from({ length: rows }, () => [5, 7]).flat(),
      by: false,
    }))
    expect(calls.slice(0, 5)).toEqual([three, one, three, one, { shape: [1, 1, 2], data: [0, 0], by: false }])
    expect(calls.slice(5).map(({ shape }) => shape)).toEqual([[4, 1, 2]])
  }),
)

it.effect("the model is not there before its warm-up has ended", () =>
  Effect.gen(function* () {
    const open = yield* Deferred.make<void>()
    const slow = ({ TEXT }: { readonly TEXT: string }) => Effect.as(Deferred.await(open), { LOUD: TEXT })
    const fiber = yield* Effect.forkChild(Testing.model(Model.each(Shout, slow, { warmUp: "zeros" })))
    yield* TestClock.adjust("1 second")
    expect(fiber.pollUnsafe()).toBe(undefined)
    yield* Deferred.succeed(open, undefined)
    const model = yield* Fiber.join(fiber)
    expect(model.model.description.statistics.loadSeconds).toBe(1)
    expect(yield* model.infer({ TEXT: "a" })).toEqual({ LOUD: "a" })
  }),
)

class Weak extends Data.TaggedError("Weak")<{ readonly message: string }> {}

const reason = "Failed to process the request(s) for model 'shout_0_1', message: too weak"
const message = `model 'shout' version 1 has failed its warm-up on instance shout_0_1: ${reason}`

it.effect("a failure is that of the layer: the other instances are released", () =>
  Effect.gen(function* () {
    let built = 0
    let released = 0
    const handler = Effect.acquireRelease(
      Effect.sync(() => {
        const index = built++
        return ({ TEXT }: { readonly TEXT: string }) =>
          index === 1 ? Effect.fail(new Weak({ message: "too weak" })) : Effect.succeed({ LOUD: TEXT })
      }),
      () => Effect.sync(() => void (released += 1)),
    )
    const layer = Model.each(Shout, handler, { instances: 3, warmUp: "random" })
    const failure = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
    expect(failure).toEqual(new WarmUpFailed({ model: "shout", version: "1", sample: "0", reason, message }))
    expect([built, released]).toEqual([3, 3])
    const ignored = Model.each(Shout, handler, { warmUp: { onFailure: "ignore" } })
    const model = yield* Testing.model(ignored)
    expect(yield* model.infer({ TEXT: "a" })).toEqual({ LOUD: "a" })
  }),
)

it.effect("a defect, a wrong output, a refused sample and one that takes too long fail it", () =>
  Effect.gen(function* () {
    class Short extends Model.Service<Short>()("short", {
      inputs: { TEXT: Tensor.utf8().check(Schema.isMinLength(1)) },
      outputs: { LOUD: Tensor.utf8() },
    }) {}
    const failures = {
      defect: Model.each(Short, () => Effect.die("bug"), { warmUp: "random" }),
      // @ts-expect-error a number is no text
      output: Model.each(Short, () => Effect.succeed({ LOUD: 1 }), { warmUp: "random" }),
      sample: Model.each(Short, () => Effect.succeed({ LOUD: "" }), { warmUp: "zeros" }),
      data: Model.each(Short, () => Effect.succeed({ LOUD: "" }), { warmUp: { inputs: [{ TEXT: "" }] } }),
      time: Model.each(Short, () => Effect.never, { warmUp: { inputs: "random", timeout: "1 second" } }),
    }
    const message = (layer: Layer.Layer<Short, WarmUpFailed>) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Effect.flip(Effect.scoped(Layer.build(layer))))
        yield* TestClock.adjust("1 second")
        return (yield* Fiber.join(fiber)).message
      })
    expect(yield* message(failures.defect)).toMatch(/on instance short_0: .*bug$/)
    expect(yield* message(failures.output)).toMatch(/output 'LOUD' of model 'short': Expected string/)
    expect(yield* message(failures.sample)).toMatch(/input 'TEXT' of model 'short': .*length of at least 1/)
    expect(yield* message(failures.data)).toMatch(/input 'TEXT' of model 'short': .*length of at least 1/)
    expect(yield* message(failures.time)).toMatch(/\[request id: warm-up\] Deadline Exceeded$/)
  }),
)

class Limited extends Model.Service<Limited>()("limited", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { x: Tensor.scalar("INT32") },
  parameters: { limit: Schema.Int },
}) {}

it.effect("declared parameters are sent with the requests of a warm-up", () =>
  Effect.gen(function* () {
    const limits: Array<number> = []
    const limited = (warmUp: Model.WarmUp<(typeof Limited)["definition"]["inputs"]>) =>
      Model.each(
        Limited,
        ({ x }, { parameters: { limit } }) => {
          limits.push(limit)
          return { x }
        },
        { warmUp },
      )
    yield* Testing.model(limited({ parameters: { limit: 3n } }))
    yield* Testing.model(limited({ inputs: [{ x: 1 }], parameters: { limit: 4n } }))
    expect(limits).toEqual([3, 4])
    const { message } = yield* Effect.flip(Testing.model(limited("zeros")))
    expect(message).toContain("parameter 'limit' of model 'limited': Missing key")
  }),
)

it.effect("a decoupled model is warm at its first response", () =>
  Effect.gen(function* () {
    let given = 0
    const endless = Stream.fromEffectRepeat(Effect.sync(() => ({ LOUD: String((given += 1)) })))
    const model = yield* Testing.model(Model.stream(Shout, () => endless, { warmUp: "zeros" }))
    expect(given).toBeGreaterThan(0)
    expect(model.model.description.statistics.responses.size).toBe(0)
  }),
)

it.effect("interrupted with its layer", () =>
  Effect.gen(function* () {
    let interrupted = 0
    const never = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (interrupted += 1)))
    const fiber = yield* Effect.forkChild(Effect.scoped(Layer.build(Model.each(Shout, never, { warmUp: "zeros" }))))
    yield* TestClock.adjust("1 second")
    yield* Fiber.interrupt(fiber)
    expect(fiber.pollUnsafe()).toSatisfy(Exit.hasInterrupts)
    expect(interrupted).toBe(1)
  }),
)

it("options out of range are found at declaration", () => {
  const given = (warmUp: Model.WarmUp<(typeof Scale)["definition"]["inputs"]>) => () =>
    Model.batch(Scale, ({ x }) => ({ y: x }), { warmUp })
  expect(given({ batchSize: 5 })).toThrow(
    'Model "scale": warmUp.batchSize must not exceed maxBatchSize 4, but 5 was given.',
  )
  expect(given({ batchSize: [1, 0] })).toThrow("warmUp.batchSize must be an integer of at least 1, but 0 was given.")
  expect(given({ count: 0 })).toThrow("warmUp.count must be an integer of at least 1, but 0 was given.")
  // @ts-expect-error no dim of an input
  expect(given({ sizes: { m: 1 } })).toThrow('Model "scale": warmUp.sizes: no input has a dim "m".')
  // @ts-expect-error no input of the model
  expect(given({ inputs: { z: "random" } })).toThrow('Model "scale": warmUp.inputs: the model has no input "z".')
  expect(given({ sizes: { n: -1 } })).toThrow("warmUp.sizes.n must be an integer of at least 1, but -1 was given.")
  expect(given({ inputs: [], batchSize: 5 })).toThrow(
    "warmUp.batchSize must not exceed maxBatchSize 4, but 5 was given.",
  )
  expect(given({ timeout: 0 })).toThrow("warmUp.timeout must be a time above 0, but 0 was given.")
})

it("every datatype has zeros and random values", () => {
  const random = WarmUpInput.random()
  const spec = { name: "x", dims: ["n", -1, 3], optional: false }
  const shape = WarmUpInput.shape(spec.dims, { n: 20 })
  expect(shape).toEqual([20, 1, 3])
  for (const datatype of DataType.all) {
    const zeros = WarmUpInput.tensor({ ...spec, datatype }, shape, "zeros", random)
    const values = WarmUpInput.tensor({ ...spec, datatype }, shape, "random", random)
    expect(
      Array.from(zeros.data, String).every((value) => value === "0" || value === ""),
      datatype,
    ).toBe(true)
    expect(new Set(Array.from(values.data, String)).size, datatype).toBeGreaterThan(1)
    if (datatype === "BYTES") continue
    const numbers = Array.from(values.data, Number)
    const max = datatype === "BF16" ? 0x3f7f : 1
    expect(
      numbers.every((value) => value >= 0 && value <= max),
      datatype,
    ).toBe(true)
  }
  const labelled = { ...spec, datatype: "INT32", labels: ["a", "b", "c", "d"] } as const
  expect(new Set(Array.from(WarmUpInput.tensor(labelled, [100], "random", random).data, Number))).toEqual(
    new Set([0, 1, 2, 3]),
  )
  const json = Tensor.json(Schema.Struct({ a: Schema.Number }))
  class Json extends Model.Service<Json>()("json", { inputs: { json }, outputs: {} }) {}
  const texts = Json.definition.signature.inputs.map((input) => {
    const { bytes } = WarmUpInput.tensor(input, [1], "zeros", random)
    return new TextDecoder().decode(bytes.subarray(4))
  })
  expect(texts).toEqual(['{"a":1}'])
})
