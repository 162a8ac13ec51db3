import { expect, it } from "@effect/vitest"
import { Data, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { QueueFull } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { TEXT: Tensor.utf8(), LENGTH: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

class Scale extends Model.Service<Scale>()("scale", {
  inputs: { x: Tensor.FP32("n"), by: Tensor.optional(Tensor.FP32(1)) },
  outputs: { y: Tensor.FP32("n") },
  maxBatchSize: 4,
}) {}

class Whole extends Model.Service<Whole>()("whole", {
  inputs: { x: Tensor.INT32(2, 2) },
  outputs: { sum: Tensor.scalar("INT32") },
}) {}

class NothingToShout extends Data.TaggedError("NothingToShout")<{ readonly message: string }> {}

const shout = Model.each(Shout, ({ TEXT }) =>
  TEXT === ""
    ? Effect.fail(new NothingToShout({ message: "nothing to shout" }))
    : Effect.succeed({ TEXT: TEXT.toUpperCase(), LENGTH: TEXT.length }),
)

it.effect("each: a function of one sample is a model", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    expect(yield* model.infer({ TEXT: "hello" })).toEqual({ TEXT: "HELLO", LENGTH: 5 })
  }).pipe(Effect.provide(shout)),
)

it.effect("each: rows of a batch are decoded and encoded one by one", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    const bytes = ["a", "bc"].map((text) => new TextEncoder().encode(text))
    const { TEXT, LENGTH } = yield* model.inferBatch({ TEXT: Tensor.make("BYTES", [2, 1], bytes) })
    expect(TEXT.data.map((element) => new TextDecoder().decode(element))).toEqual(["A", "BC"])
    expect([...LENGTH.data]).toEqual([1, 2])
  }).pipe(Effect.provide(shout)),
)

it.effect("each: a plain function is a handler too, and what it throws is a failure", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    expect(yield* model.infer({ TEXT: "hello" })).toEqual({ TEXT: "HELLO", LENGTH: 5 })
    expect(yield* Effect.flip(model.infer({ TEXT: "bug" }))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "Failed to process the request(s) for model 'shout_0', message: no bugs",
    })
  }).pipe(
    Effect.provide(
      Model.each(Shout, ({ TEXT }) => {
        if (TEXT === "bug") throw new Error("no bugs")
        return { TEXT: TEXT.toUpperCase(), LENGTH: TEXT.length }
      }),
    ),
  ),
)

class Dark extends Data.TaggedError("Dark")<{ readonly row: number }> {}

const failures: ReadonlyArray<readonly [unknown, string]> = [
  [new Dark({ row: 3 }), "Dark"],
  [{ _tag: "Late", message: "by a day" }, "by a day"],
  [{ _tag: "Late" }, "Late"],
  [new RangeError(), "RangeError"],
  [Object.create(null), "[object Object]"],
  ["oops", "oops"],
  [undefined, "undefined"],
]

it.effect.each(failures)("each: reports a failure without a message, %o, by its tag or name", ([failure, text]) =>
  Effect.gen(function* () {
    const variants = [() => Effect.fail(failure), () => Promise.reject(failure), thrower(failure)]
    for (const variant of variants) {
      const calling = Effect.flatMap(Shout, ({ infer }) => Effect.flip(infer({ TEXT: "x" })))
      const error = yield* Effect.provide(calling, Model.each(Shout, variant), { local: true })
      expect(error.message).toBe(`Failed to process the request(s) for model 'shout_0', message: ${text}`)
    }
  }),
)

const thrower = (failure: unknown) => (): never => {
  throw failure
}

it.effect("each: the first row that fails ends the others of its request, and no other request", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    const texts = (...all: ReadonlyArray<string>) => {
      const bytes = all.map((text) => new TextEncoder().encode(text))
      return model.inferBatch({ TEXT: Tensor.make("BYTES", [all.length, 1], bytes) })
    }
    const [failing, good] = yield* Effect.all([Effect.flip(texts("wait", "", "wait")), texts("x", "y")], {
      concurrency: "unbounded",
    })
    expect(failing).toMatchObject({ _tag: "ExecutionFailed", message: expect.stringContaining("nothing to shout") })
    expect([...good.LENGTH.data]).toEqual([1, 1])
    expect(interrupted).toBe(2)
  }).pipe(
    Effect.provide(
      Model.each(Shout, ({ TEXT }) => {
        if (TEXT === "wait") return Effect.onInterrupt(Effect.never, () => Effect.sync(() => (interrupted += 1)))
        if (TEXT === "") return Effect.fail(new NothingToShout({ message: "nothing to shout" }))
        return Effect.succeed({ TEXT, LENGTH: TEXT.length })
      }),
    ),
  ),
)

let interrupted = 0

it.effect("each: a failing sample fails alone", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    const [bad, good] = yield* Effect.all(
      [Effect.exit(model.infer({ TEXT: "" })), Effect.exit(model.infer({ TEXT: "x" }))],
      { concurrency: "unbounded" },
    )
    expect(good).toMatchObject({ _tag: "Success", value: { TEXT: "X" } })
    expect(yield* Effect.flip(bad)).toMatchObject({
      _tag: "ExecutionFailed",
      message: "Failed to process the request(s) for model 'shout_0', message: nothing to shout",
    })
  }).pipe(Effect.provide(shout)),
)

it.effect("each: of a defect callers see the message, and nothing else; the model goes on", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    const error = yield* Effect.flip(model.infer({ TEXT: "bug" }))
    expect(error).toMatchObject({
      _tag: "ExecutionFailed",
      message: "Failed to process the request(s) for model 'shout_0', message: no such letter",
    })
    expect(yield* model.infer({ TEXT: "x" })).toEqual({ TEXT: "X", LENGTH: 1 })
  }).pipe(
    Effect.provide(
      Model.each(Shout, ({ TEXT }) => {
        if (TEXT === "bug") return Effect.die(new Error("no such letter"))
        return Effect.succeed({ TEXT: TEXT.toUpperCase(), LENGTH: 1 })
      }),
    ),
  ),
)

it.effect("each: what a handler returns is checked against the signature", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    expect(yield* Effect.flip(model.infer({ TEXT: "x" }))).toMatchObject({
      _tag: "ExecutionFailed",
      message: expect.stringContaining("output 'LENGTH' of model 'shout'"),
    })
  }).pipe(Effect.provide(Model.each(Shout, ({ TEXT }) => Effect.succeed({ TEXT, LENGTH: 1.5 })))),
)

it.effect("each: a handler is built once per instance, and finalized when the model unloads", () =>
  Effect.gen(function* () {
    const life: Array<string> = []
    const handler = Effect.acquireRelease(
      Effect.sync(() => {
        life.push("initialize")
        return ({ TEXT }: { readonly TEXT: string }) => Effect.succeed({ TEXT, LENGTH: 0 })
      }),
      () => Effect.sync(() => life.push("finalize")),
    )
    const use = Effect.gen(function* () {
      yield* (yield* Shout).infer({ TEXT: "x" })
      life.push("execute")
    })
    yield* use.pipe(Effect.provide(Model.each(Shout, handler, { instances: 2 })))
    expect(life).toEqual(["initialize", "initialize", "execute", "finalize", "finalize"])
  }),
)

it.effect("each: an inner model's errors keep their tag through the chain", () =>
  Effect.gen(function* () {
    const model = yield* Shout
    expect(yield* Effect.flip(model.infer({ TEXT: "x" }))).toMatchObject({ _tag: "QueueFull", message: "full" })
  }).pipe(Effect.provide(Model.each(Shout, () => Effect.fail(new QueueFull({ message: "full" }))))),
)

it.effect("each in each: concurrent outer samples share the inner model's batches", () =>
  Effect.gen(function* () {
    const batches: Array<number> = []
    const inner = Model.batch(Scale, ({ x }) => {
      batches.push(x.shape[0])
      return Effect.succeed({ y: x })
    })
    const outer = Model.each(
      Shout,
      Effect.gen(function* () {
        const scale = yield* Scale
        return ({ TEXT }: { readonly TEXT: string }) =>
          scale
            .infer({ x: Tensor.make("FP32", [1], Float32Array.of(TEXT.length)) })
            .pipe(Effect.map(({ y }) => ({ TEXT, LENGTH: y.data[0] ?? 0 })))
      }),
    )
    const program = Effect.gen(function* () {
      const shout = yield* Shout
      const bytes = ["a", "bb", "ccc", "dddd"].map((text) => new TextEncoder().encode(text))
      return yield* shout.inferBatch({ TEXT: Tensor.make("BYTES", [4, 1], bytes) })
    })
    const { LENGTH } = yield* program.pipe(Effect.provide(outer.pipe(Layer.provide(inner))))
    expect([...LENGTH.data]).toEqual([1, 2, 3, 4])
    expect(batches).toEqual([4])
  }),
)

const scaled = Model.batch(Scale, ({ x, by }) =>
  Effect.succeed({
    y: Tensor.make(
      "FP32",
      x.shape,
      x.data.map((value) => value * (by?.data[0] ?? 2)),
    ),
  }),
)

it.effect("batch: the whole batch comes as one tensor per input", () =>
  Effect.gen(function* () {
    const model = yield* Scale
    const { y } = yield* model.infer({ x: Tensor.make("FP32", [3], Float32Array.of(1, 2, 3)) })
    expect(y.shape).toEqual([3])
    expect([...y.data]).toEqual([2, 4, 6])
    const batch = yield* model.inferBatch({
      x: Tensor.make("FP32", [2, 1], Float32Array.of(1, 2)),
      by: Tensor.make("FP32", [2, 1], Float32Array.of(10, 10)),
    })
    expect([...batch.y.data]).toEqual([10, 20])
  }).pipe(Effect.provide(scaled)),
)

it.effect("batch: a plain function is a handler too", () =>
  Effect.gen(function* () {
    const model = yield* Scale
    const { y } = yield* model.infer({ x: Tensor.make("FP32", [2], Float32Array.of(1, 2)) })
    expect([...y.data]).toEqual([2, 4])
  }).pipe(
    Effect.provide(
      Model.batch(Scale, ({ x }) => ({
        y: Tensor.make(
          "FP32",
          x.shape,
          x.data.map((v) => v * 2),
        ),
      })),
    ),
  ),
)

it.effect("batch: requests of other dims or other inputs are not mixed", () =>
  Effect.gen(function* () {
    const shapes: Array<string> = []
    const gate = yield* Deferred.make<void>()
    const layer = Model.batch(Scale, ({ x, by }) => {
      shapes.push(`${x.shape}${by === undefined ? "" : " by"}`)
      return Effect.as(Deferred.await(gate), { y: x })
    })
    yield* Effect.gen(function* () {
      const model = yield* Scale
      const x = (length: number) => Tensor.make("FP32", [length], new Float32Array(length))
      const by = Tensor.make("FP32", [1], Float32Array.of(1))
      const inputs = [{ x: x(1) }, { x: x(2) }, { x: x(3) }, { x: x(2) }, { x: x(2), by }]
      const callers: Array<Fiber.Fiber<unknown, unknown>> = []
      for (const input of inputs) {
        callers.push(yield* Effect.forkChild(model.infer(input), { startImmediately: true }))
        yield* TestClock.adjust(0)
      }
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach(callers, (caller) => Fiber.join(caller))
    }).pipe(Effect.provide(layer))
    expect(shapes).toEqual(["1,1", "2,2", "1,3", "1,2 by"])
  }),
)

it.effect("batch: an answer of another number of rows is an error, not a shift", () =>
  Effect.gen(function* () {
    const model = yield* Scale
    const x = Tensor.make("FP32", [2, 1], Float32Array.of(1, 2))
    expect(yield* Effect.flip(model.inferBatch({ x }))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "output 'y' of model 'scale': wrong length of the batch: expected 2 rows, got 1",
    })
  }).pipe(Effect.provide(Model.batch(Scale, ({ x }) => Effect.succeed({ y: Tensor.slice(x, 0, 1) as typeof x })))),
)

it.effect("a model without a batch dimension gets one sample per execution", () =>
  Effect.gen(function* () {
    const model = yield* Whole
    const x = Tensor.make("INT32", [2, 2], Int32Array.of(1, 2, 3, 4))
    expect(yield* model.infer({ x })).toEqual({ sum: 10 })
    const batch = yield* model.inferBatch({ x: Tensor.make("INT32", [1, 2, 2], x.data) })
    expect(batch.sum.shape).toEqual([1, 1])
  }).pipe(
    Effect.provide(
      Model.each(Whole, ({ x }) => Effect.succeed({ sum: x.data.reduce((sum, value) => sum + value, 0) })),
    ),
  ),
)

it.effect("wrong inputs that types could not stop are refused before they are queued", () =>
  Effect.gen(function* () {
    const model = yield* Scale
    const wrong: { x: Tensor.Tensor<"FP32", readonly [number]> } = JSON.parse('{"x":[1]}')
    expect(yield* Effect.flip(model.infer(wrong))).toMatchObject({
      _tag: "InvalidRequest",
      message: `input 'x' of model 'scale': not a tensor: declared as FP32["n"], got an array`,
    })
    const batch = Tensor.make("FP32", [5, 1], new Float32Array(5))
    expect(yield* Effect.flip(model.inferBatch({ x: batch }, { concurrentChunks: 0 }))).toMatchObject({
      _tag: "InvalidRequest",
      message: "inference request batch-size must be <= 4 for 'scale', got 5",
    })
  }).pipe(Effect.provide(scaled)),
)

it.effect("each: rows of one request whose outputs differ in a dynamic dim are an error, not a torn tensor", () =>
  Effect.gen(function* () {
    const model = yield* Scale
    const x = Tensor.make("FP32", [2, 1], Float32Array.of(1, 3))
    expect(yield* Effect.flip(model.inferBatch({ x }))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "output 'y' of model 'scale': the rows of one request have different shapes, [1] and [3]",
    })
  }).pipe(
    Effect.provide(
      Model.each(Scale, ({ x }) => {
        const n = x.data[0] ?? 0
        return Effect.succeed({ y: Tensor.make("FP32", [n], new Float32Array(n)) })
      }),
    ),
  ),
)

it.effect("bytes that are not those of the shape are refused, going in and coming out", () =>
  Effect.gen(function* () {
    const model = yield* Scale
    const short = new Tensor.Tensor("FP32", [3] as const, new Uint8Array(4))
    expect(yield* Effect.flip(model.infer({ x: short }))).toMatchObject({
      _tag: "InvalidRequest",
      message: "input 'x' of model 'scale': expected 12 bytes for FP32[3], got 4",
    })
    const x = Tensor.make("FP32", [1], Float32Array.of(1))
    expect(yield* Effect.flip(model.infer({ x }))).toMatchObject({
      _tag: "ExecutionFailed",
      message: expect.stringContaining("expected 4 bytes for FP32[1,1], got 0"),
    })
  }).pipe(
    Effect.provide(
      Model.batch(Scale, ({ x }) => Effect.succeed({ y: new Tensor.Tensor("FP32", x.shape, new Uint8Array()) })),
    ),
  ),
)

it("a handler without an instance is refused when its layer is made", () => {
  expect(() => Model.each(Shout, () => Effect.never, { instances: 0 })).toThrow(
    'Model "shout": instances must be an integer of at least 1, but 0 was given.',
  )
})

class Pair extends Model.Service<Pair>()("pair", {
  inputs: { a: Tensor.FP32("n"), b: Tensor.FP32("n") },
  outputs: { y: Tensor.FP32("n") },
}) {}

it.effect("a symbolic dim stands for one extent in a call, in process too", () =>
  Effect.gen(function* () {
    const model = yield* Pair
    const [one, two] = [Tensor.make("FP32", [1], new Float32Array(1)), Tensor.make("FP32", [2], new Float32Array(2))]
    expect(yield* Effect.flip(model.infer({ a: one, b: two }))).toMatchObject({
      _tag: "InvalidRequest",
      message: "dimension 'n' is 1 in input 'a' but 2 in input 'b' for model 'pair'",
    })
    expect((yield* model.infer({ a: two, b: two })).y.shape).toEqual([2])
  }).pipe(Effect.provide(Model.each(Pair, ({ a }) => Effect.succeed({ y: a })))),
)

it.effect("timeout: a call whose time has passed in the queue fails with DeadlineExceeded", () =>
  Effect.gen(function* () {
    const model = yield* Scale
    const x = Tensor.make("FP32", [1], Float32Array.of(1))
    const running = yield* Effect.forkChild(model.infer({ x }), { startImmediately: true })
    yield* TestClock.adjust(0)
    const late = yield* Effect.forkChild(model.infer({ x }, { timeout: "1 second" }), { startImmediately: true })
    yield* TestClock.adjust("1 second")
    expect(yield* Effect.flip(Fiber.join(late))).toMatchObject({ _tag: "DeadlineExceeded" })
    expect(running.pollUnsafe()).toBeUndefined()
  }).pipe(Effect.provide(Model.batch(Scale, () => Effect.never))),
)
