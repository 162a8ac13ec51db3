/** Variants of a model that requests load and that are unloaded when idle, on the test clock. */
import { expect, it } from "@effect/vitest"
import { Context, Data, Deferred, type Duration, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Unrecoverable } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"
import { Registry } from "./Registry.ts"

const fields = { inputs: { x: Tensor.scalar("INT32") }, outputs: { y: Tensor.utf8() }, maxBatchSize: 8 }

class Writer extends Model.Service<Writer>()("writer", {
  ...fields,
  parameters: { adapter: Schema.String },
  batching: { maxQueueSize: 3 },
}) {}

class NoAdapter extends Data.TaggedError("NoAdapter")<{ readonly message: string }> {}

/** Records loads and unloads. A load waits for the gate of its variant, if any, and an unload for its release. */
const writer = (
  log: Array<string>,
  options: { readonly capacity?: number; readonly idleTimeToLive?: Duration.Input } = {},
) => {
  const gates = new Map<string, Deferred.Deferred<void>>()
  const releases = new Map<string, Deferred.Deferred<void>>()
  const handler = (adapter: string) =>
    Effect.gen(function* () {
      if (adapter === "bad") return yield* new NoAdapter({ message: "no such adapter" })
      yield* Effect.acquireRelease(
        Effect.sync(() => log.push(`+${adapter}`)),
        () =>
          Effect.gen(function* () {
            const release = releases.get(adapter)
            if (release !== undefined) yield* Deferred.await(release)
            log.push(`-${adapter}`)
          }),
      )
      const gate = gates.get(adapter)
      if (gate !== undefined) yield* Deferred.await(gate)
      return ({ x }: { readonly x: number }) =>
        x < 0 ? Effect.as(Effect.sleep("1 minute"), { y: "late" }) : Effect.succeed({ y: `${adapter} ${x}` })
    })
  const layer = Model.family(Writer, {
    key: ({ adapter }) => adapter,
    layer: (adapter) => Model.each(Writer, handler(adapter)),
    capacity: 2,
    ...options,
  })
  return { layer, gates, releases }
}

const call =
  (model: Writer["Service"]) =>
  (adapter: string, x = 1) =>
    Effect.map(model.infer({ x }, { parameters: { adapter } }), ({ y }) => y)

it.effect("a request loads its variant, once for all requests", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const { layer, gates } = writer(log)
    const gate = yield* Deferred.make<void>()
    gates.set("a", gate)
    const model = yield* Testing.model(layer)
    const infer = call(model)
    expect([log, model.model.life.isReady()]).toEqual([[], true])
    const pending = yield* Effect.forEach([1, 2], (x) => Effect.forkChild(infer("a", x)))
    yield* Testing.advance(0)
    expect([log, model.model.life.pending()]).toEqual([["+a"], 2])
    expect(yield* infer("b")).toBe("b 1")
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Effect.forEach(pending, Fiber.join)).toEqual(["a 1", "a 2"])
    expect(yield* infer("a", 3)).toBe("a 3")
    expect(log).toEqual(["+a", "+b"])
    // Batches are a variant's own; they count together.
    expect(yield* model.executions).toEqual([
      { rows: 1, requests: 1 },
      { rows: 2, requests: 2 },
      { rows: 1, requests: 1 },
    ])
    expect(model.model.description.statistics.inferenceCount).toBe(4)
  }),
)

it.effect("an idle variant is unloaded, and loaded again by the next request", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const infer = call(yield* Testing.model(writer(log, { idleTimeToLive: "10 minutes" }).layer))
    yield* infer("a")
    yield* Testing.advance("9 minutes")
    yield* infer("a")
    yield* Testing.advance("9 minutes")
    expect(log).toEqual(["+a"])
    yield* Testing.advance("1 minute")
    expect(log).toEqual(["+a", "-a"])
    expect(yield* infer("a")).toBe("a 1")
    expect(log).toEqual(["+a", "-a", "+a"])
  }),
)

it.effect("one that answers is not idle", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const infer = call(yield* Testing.model(writer(log, { idleTimeToLive: "10 seconds" }).layer))
    const late = yield* Effect.forkChild(infer("a", -1))
    yield* Testing.advance("59 seconds")
    expect(log).toEqual(["+a"])
    yield* Testing.advance("1 second")
    expect(yield* Fiber.join(late)).toBe("late")
    yield* Testing.advance("9 seconds")
    expect(log).toEqual(["+a"])
    yield* Testing.advance("11 seconds")
    expect(log).toEqual(["+a", "-a"])
  }),
)

it.effect(
  "at the capacity the one that has been idle for longest goes first; where none is, the request is refused",
  () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const model = yield* Testing.model(writer(log).layer)
      const infer = call(model)
      for (const adapter of ["a", "b", "a", "c"]) {
        yield* infer(adapter)
        yield* Testing.advance("1 second")
      }
      expect(log).toEqual(["+a", "+b", "-b", "+c"])
      const late = yield* Effect.forEach(["a", "c"], (adapter) => Effect.forkChild(infer(adapter, -1)))
      yield* Testing.advance(0)
      expect(yield* Effect.flip(infer("d"))).toMatchObject({
        _tag: "QueueFull",
        message: "[request id: <id_unknown>] all 2 variants of model 'writer' that fit its capacity are in use",
      })
      yield* Testing.advance("1 minute")
      yield* Effect.forEach(late, Fiber.join)
      expect(yield* infer("d")).toBe("d 1")
      expect(log).toEqual(["+a", "+b", "-b", "+c", "-a", "+d"])
      expect(model.model.description.statistics.failures.REJECTED).toBe(1)
    }),
)

it.effect("a load waits until variants that are being unloaded have ended, its own earlier load too", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const { layer, releases } = writer(log, { capacity: 1 })
    const [first, second] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const infer = call(yield* Testing.model(layer))
    yield* infer("b")
    releases.set("b", first)
    const other = yield* Effect.forkChild(infer("a"))
    yield* Testing.advance(0)
    expect(log).toEqual(["+b"])
    yield* Deferred.succeed(first, undefined)
    expect(yield* Fiber.join(other)).toBe("a 1")
    expect(log).toEqual(["+b", "-b", "+a"])
    releases.set("a", second)
    // The load of b evicts a and waits; the next one for a waits for the end of both.
    const evicting = yield* Effect.forkChild(infer("b"))
    yield* Testing.advance(0)
    expect(log).toEqual(["+b", "-b", "+a"])
    yield* Deferred.succeed(second, undefined)
    yield* Fiber.join(evicting)
    expect(yield* infer("a")).toBe("a 1")
    expect(log).toEqual(["+b", "-b", "+a", "-a", "+b", "-b", "+a"])
  }),
)

it.effect("one that cannot be loaded fails those who wait for it, and is tried again", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const infer = call(yield* Testing.model(writer(log).layer))
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(yield* Effect.flip(infer("bad"))).toMatchObject({
        _tag: "ExecutionFailed",
        message: "cannot load variant 'bad' of model 'writer': no such adapter",
      })
    }
    expect(yield* infer("a")).toBe("a 1")
  }),
)

it.effect("waiting requests can be cancelled, have deadlines, and are limited in number", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const { layer, gates } = writer(log)
    const gate = yield* Deferred.make<void>()
    gates.set("a", gate)
    const model = yield* Testing.model(layer)
    const infer = call(model)
    const begin = (x: number) =>
      Effect.forkChild(
        Effect.result(
          model.infer(
            { x },
            x === 2 ? { timeout: "1 second", parameters: { adapter: "a" } } : { parameters: { adapter: "a" } },
          ),
        ),
      )
    const [first, second, third] = [yield* begin(1), yield* begin(2), yield* begin(3)]
    yield* Testing.advance(0)
    expect(yield* Effect.flip(infer("a"))).toMatchObject({ _tag: "QueueFull" })
    yield* Testing.advance("1 second")
    expect(yield* Fiber.join(second)).toMatchObject({ failure: { _tag: "DeadlineExceeded" } })
    yield* Fiber.interrupt(third)
    expect(model.model.life.pending()).toBe(1)
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(first)).toMatchObject({ success: { y: "a 1" } })
    yield* model.model.life.drained
  }),
)

it.effect("its end refuses who waits, and ends what is loaded and what is being loaded", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const { layer, gates } = writer(log)
    gates.set("a", yield* Deferred.make<void>())
    const waiting = yield* Effect.scoped(
      Effect.gen(function* () {
        const infer = call(yield* Testing.model(layer))
        yield* infer("b")
        const waiting = yield* Effect.forkDetach(Effect.flip(infer("a")))
        yield* Testing.advance(0)
        return waiting
      }),
    )
    expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "Unavailable" })
    expect(log.toSorted()).toEqual(["+a", "+b", "-a", "-b"])
  }),
)

it.effect("its end refuses those that wait for an unload", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const { layer, releases } = writer(log, { capacity: 1 })
    const release = yield* Deferred.make<void>()
    releases.set("a", release)
    const waiting = yield* Effect.scoped(
      Effect.gen(function* () {
        const infer = call(yield* Testing.model(layer))
        yield* infer("a")
        const waiting = yield* Effect.forkDetach(Effect.flip(infer("b")))
        yield* Testing.advance(0)
        yield* Effect.forkDetach(Effect.andThen(Fiber.join(waiting), Deferred.succeed(release, undefined)))
        return waiting
      }),
    )
    expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "Unavailable" })
    expect(log).toEqual(["+a", "-a"])
  }),
)

it.effect("parameters that are not as declared, and a key that throws, fail their request alone", () =>
  Effect.gen(function* () {
    const layer = Model.family(Writer, {
      key: ({ adapter }) => {
        if (adapter.includes("/")) throw new Error(`no path: ${adapter}`)
        return adapter
      },
      layer: (adapter) => Model.each(Writer, ({ x }) => ({ y: `${adapter} ${x}` })),
      capacity: 1,
    })
    const model = yield* Testing.model(layer)
    expect(yield* Effect.flip(call(model)("../a"))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "cannot select a variant of model 'writer': no path: ../a",
    })
    const inputs = [{ name: "x", datatype: "INT32", shape: [1, 1], data: [1] }]
    expect(yield* Effect.flip(model.inferJson({ inputs }))).toMatchObject({ _tag: "InvalidRequest" })
    expect(yield* model.inferJson({ inputs, parameters: { adapter: "a" } })).toMatchObject({
      outputs: [{ data: ["a 1"] }],
    })
  }),
)

it.effect("a variant that cannot recover makes the model of no use", () =>
  Effect.gen(function* () {
    const lost = new Unrecoverable({ message: "the device is lost" })
    const layer = Model.family(Writer, {
      key: ({ adapter }) => adapter,
      layer: () => Model.each(Writer, () => Effect.fail(lost)),
      capacity: 2,
    })
    const model = yield* Testing.model(layer)
    const failure = yield* Effect.forkChild(model.model.life.unrecoverable ?? Effect.never)
    expect(yield* Effect.flip(call(model)("a"))).toBe(lost)
    expect(yield* Fiber.join(failure)).toBe(lost)
    expect(model.model.life.isReady()).toBe(false)
  }),
)

it.effect(
  "variants share what the family is built with, the registry too; a circle through one of them is refused",
  () =>
    Effect.gen(function* () {
      class Outer extends Model.Service<Outer>()("outer", fields) {}
      class Weights extends Context.Service<Weights, { readonly from: string }>()("Weights") {}
      let loads = 0
      const weights = Layer.effect(
        Weights,
        Effect.sync(() => ({ from: `disk ${++loads}` })),
      )
      const layer = Model.family(Writer, {
        key: ({ adapter }) => adapter,
        layer: (adapter) =>
          Model.each(
            Writer,
            Effect.gen(function* () {
              const [models, { from }] = [yield* Registry, yield* Weights]
              return ({ x }: { readonly x: number }) => {
                if (adapter !== "asks") return Effect.succeed({ y: `${adapter} ${x} ${from}` })
                const sample = { x: Tensor.make("INT32", [1], Int32Array.of(x)) }
                return Effect.as(models.infer("outer", sample), { y: "never" })
              }
            }),
          ).pipe(Layer.provide([Registry.layer, weights])),
        capacity: 3,
      })
      const outer = Model.each(
        Outer,
        Effect.map(
          Writer,
          ({ infer }) =>
            ({ x }) =>
              infer({ x }, { parameters: { adapter: "asks" } }),
        ),
      )
      const all = Layer.provideMerge(outer, layer).pipe(Layer.provideMerge(weights), Layer.provide(Registry.layer))
      const infer = call(yield* Testing.model(all, Writer))
      expect([yield* infer("a"), yield* infer("b")]).toEqual(["a 1 disk 1", "b 1 disk 1"])
      expect(yield* Effect.flip(infer("asks"))).toMatchObject({
        _tag: "ExecutionFailed",
        message: expect.stringContaining("model 'outer' cannot call"),
      })
    }),
)

class Count extends Model.Service<Count>()("count", {
  inputs: { to: Tensor.scalar("INT32") },
  outputs: { n: Tensor.scalar("INT32") },
}) {}

const count = Model.stream(Count, ({ to }) => Stream.map(Stream.range(1, to), (n) => ({ n })))

it.effect("the error of a model on demand names the model once", () =>
  Effect.gen(function* () {
    const failsWith = (message: string) =>
      Effect.gen(function* () {
        const layer = Model.each(Count, Effect.fail(new NoAdapter({ message })))
        const model = yield* Testing.model(Model.onDemand(Count, layer))
        return (yield* Effect.flip(model.infer({ to: 1 }))).message
      })
    expect(yield* failsWith("no such file")).toBe("cannot load model 'count': no such file")
    expect(yield* failsWith("cannot load model 'count' from 'a.onnx': empty")).toBe(
      "cannot load model 'count' from 'a.onnx': empty",
    )
  }),
)

it.effect("a model on demand, also a decoupled one; one that contradicts its declaration is an error", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(Model.onDemand(Count, count, { decoupled: true, idleTimeToLive: "1 second" }))
    expect(yield* Stream.runCollect(model.stream({ to: 3 }))).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    yield* Testing.advance("1 second")
    expect(yield* Stream.runCollect(model.stream({ to: 1 }))).toEqual([{ n: 1 }])
    const other = yield* Testing.model(Model.onDemand(Count, count))
    expect(yield* Effect.flip(other.infer({ to: 1 }))).toMatchObject({
      message: "the loaded variant of model 'count' is decoupled, but the model is declared as not decoupled",
    })
  }),
)

it("wrong options throw, and do not compile", () => {
  expect(() => writer([], { capacity: 0 })).toThrow(
    'Model "writer": capacity must be an integer of at least 1, but 0 was given.',
  )
  expect(() => Model.onDemand(Count, count, { idleTimeToLive: -1 })).toThrow("idleTimeToLive must be a time")
  const wrong = () => [
    // @ts-expect-error no such parameter
    Model.family(Writer, { key: ({ lora }) => lora, layer: () => writer([]).layer, capacity: 1 }),
    // @ts-expect-error of another model
    Model.family(Writer, { key: ({ adapter }) => adapter, layer: () => count, capacity: 1 }),
    // @ts-expect-error of another model
    Model.onDemand(Writer, count),
    // @ts-expect-error bounded
    Model.family(Writer, { key: ({ adapter }) => adapter, layer: () => writer([]).layer }),
  ]
  expect(wrong).toBeTypeOf("function")
})
