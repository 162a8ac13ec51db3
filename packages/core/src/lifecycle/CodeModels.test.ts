/**
 * Models that come and go in code, as the Registry service has it, without a port. The same over both ports:
 * ServerModels.test.ts.
 */
import { ModelVersion } from "./ModelVersion.ts"
import { ModelStore } from "./ModelStore.ts"
import { expect, it } from "@effect/vitest"
import { Context, Data, Deferred, Effect, Exit, Fiber, Layer, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import type { Control } from "./ModelRepository.ts"
import { Registry } from "./Registry.ts"
import { Served } from "./Served.ts"

const fields = { inputs: { x: Tensor.scalar("INT32") }, outputs: { y: Tensor.scalar("INT32") } }

class Scale extends Model.Service<Scale>()("scale", fields) {}
class Scale2 extends Model.Service<Scale2>()("scale", { ...fields, version: 2 }) {}
class Shape extends Model.Service<Shape>()("scale", { ...fields, outputs: { z: Tensor.scalar("INT32") } }) {}
class Outer extends Model.Service<Outer>()("outer", fields) {}

class NoWeights extends Data.TaggedError("NoWeights")<{ readonly message: string }> {}

const times = (factor: number) => Model.each(Scale, ({ x }) => ({ y: x * factor }))

/** Notes when it is initialized and finalized, and answers each request once its gate is open. */
const watched = (log: Array<string>, name: string, factor = 1) => {
  const entered = Deferred.makeUnsafe<void>()
  const gate = Deferred.makeUnsafe<void>()
  const handler = Effect.gen(function* () {
    yield* Effect.acquireRelease(
      Effect.sync(() => log.push(`+${name}`)),
      () => Effect.sync(() => log.push(`-${name}`)),
    )
    return ({ x }: { readonly x: number }) =>
      Deferred.succeed(entered, undefined).pipe(Effect.andThen(Deferred.await(gate)), Effect.as({ y: x * factor }))
  })
  return { layer: Model.each(Scale, handler), handler, entered, gate, open: Deferred.succeed(gate, undefined) }
}

/** A separate registry, with a server whose `index` shows the loaded models that are not ready. */
const registry = Effect.gen(function* () {
  const context = yield* Layer.build(Layer.fresh(Registry.layer))
  const served = Context.get(context, Served)
  const store = new ModelStore()
  yield* served.include(store)
  const index = () => store.indexOfCode().filter(({ state }) => state !== "READY")
  return { models: Context.get(context, Registry), served, index }
})

const value = (models: Registry["Service"], name: string, version?: number) =>
  Effect.map(
    models.infer(name, { x: Tensor.make("INT32", [1], Int32Array.of(7)) }, version === undefined ? {} : { version }),
    ({ y }) => Number(y?.data[0]),
  )

const untilIdle = TestClock.adjust(0)

it.effect("a loaded model answers, an unloaded one is unknown, and a loaded one cannot be loaded again", () =>
  Effect.gen(function* () {
    const { models, index } = yield* registry
    const log: Array<string> = []
    const { layer, open } = watched(log, "a", 2)
    yield* open
    expect(models.isReady("scale")).toBe(false)
    yield* models.load([Scale], layer)
    expect(models.isReady("scale")).toBe(true)
    expect(yield* value(models, "scale")).toBe(14)
    expect(yield* Effect.flip(models.load([Scale], times(3)))).toMatchObject({
      _tag: "AlreadyExists",
      message: "model 'scale' version 1 already exists",
    })
    yield* models.unload("scale")
    expect(log).toEqual(["+a", "-a"])
    expect([models.models, index()]).toEqual([[], []])
    for (const gone of [value(models, "scale"), models.unload("scale")]) {
      expect(yield* Effect.flip(gone)).toMatchObject({
        _tag: "ModelNotFound",
        message: "Request for unknown model: 'scale' is not found",
      })
    }
    yield* models.load([Scale], times(3))
    expect(yield* value(models, "scale")).toBe(21)
  }),
)

it.effect("a replacement loads first; the old one answers what it has, and is finalized after that", () =>
  Effect.gen(function* () {
    const { models, index } = yield* registry
    const log: Array<string> = []
    const old = watched(log, "old")
    yield* models.load([Scale], old.layer)
    const inFlight = yield* Effect.forkChild(value(models, "scale"))
    yield* Deferred.await(old.entered)
    yield* models.replace(
      [Scale],
      Model.each(
        Scale,
        Effect.map(
          Effect.sync(() => log.push("+new")),
          () =>
            ({ x }) => ({ y: x * 2 }),
        ),
      ),
    )
    expect(yield* value(models, "scale")).toBe(14)
    expect(log).toEqual(["+old", "+new"])
    expect(inFlight.pollUnsafe()).toBeUndefined()
    yield* old.open
    expect(yield* Fiber.join(inFlight)).toBe(7)
    yield* untilIdle
    expect([log, index()]).toEqual([["+old", "+new", "-old"], []])
  }),
)

it.effect("a failed replacement reports the reason, and keeps the previous model", () =>
  Effect.gen(function* () {
    const { models, index } = yield* registry
    const released: Array<string> = []
    yield* models.load([Scale], times(2))
    const broken = Model.each(
      Scale2,
      Effect.gen(function* () {
        yield* Effect.addFinalizer(() => Effect.sync(() => released.push("broken")))
        return yield* Effect.as(new NoWeights({ message: "no weights" }), ({ x }: { readonly x: number }) => ({ y: x }))
      }),
    )
    const error: NoWeights | { readonly _tag: string } = yield* Effect.flip(models.replace([Scale2], broken))
    expect(error).toEqual(new NoWeights({ message: "no weights" }))
    expect(released).toEqual(["broken"])
    expect(yield* value(models, "scale")).toBe(14)
    expect(index()).toEqual([{ name: "scale", version: "2", state: "UNAVAILABLE", reason: "no weights" }])
    const cold = Model.each(Scale, () => Effect.fail("cold"), { warmUp: "zeros" })
    expect(yield* Effect.flip(models.replace([Scale], cold))).toMatchObject({ _tag: "WarmUpFailed" })
    expect(yield* value(models, "scale")).toBe(14)
    yield* models.unload("scale")
    expect(index()).toEqual([])
  }),
)

it.effect("the index shows loads, unloads and failed loads", () =>
  Effect.gen(function* () {
    const { models, index } = yield* registry
    const gate = yield* Deferred.make<void>()
    const slow = Model.each(
      Scale,
      Effect.as(Deferred.await(gate), ({ x }: { readonly x: number }) => Effect.as(Effect.sleep("1 minute"), { y: x })),
    )
    const loading = yield* Effect.forkChild(models.load([Scale], slow), { startImmediately: true })
    yield* untilIdle
    expect(index()).toEqual([{ name: "scale", version: "1", state: "LOADING", reason: "" }])
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(loading)
    expect(index()).toEqual([])
    const pending = yield* Effect.forkChild(value(models, "scale"), { startImmediately: true })
    yield* untilIdle
    const unloading = yield* Effect.forkChild(models.unload("scale", { drain: "2 minutes" }), {
      startImmediately: true,
    })
    yield* untilIdle
    expect(index()).toEqual([{ name: "scale", version: "1", state: "UNLOADING", reason: "" }])
    yield* TestClock.adjust("1 minute")
    expect(yield* Fiber.join(pending)).toBe(7)
    yield* Fiber.join(unloading)
    expect(index()).toEqual([])
  }),
)

it.effect("a model that does not get done is not waited for longer than its drain", () =>
  Effect.gen(function* () {
    const { models } = yield* registry
    const log: Array<string> = []
    const stuck = watched(log, "stuck")
    yield* models.load([Scale], stuck.layer)
    const pending = yield* Effect.forkChild(Effect.result(value(models, "scale")))
    yield* Deferred.await(stuck.entered)
    const unloading = yield* Effect.forkChild(models.unload("scale", { drain: "10 seconds" }), {
      startImmediately: true,
    })
    yield* TestClock.adjust("9 seconds")
    expect(log).toEqual(["+stuck"])
    yield* TestClock.adjust("1 seconds")
    yield* Fiber.join(unloading)
    expect(log).toEqual(["+stuck", "-stuck"])
    expect(Result.isFailure(yield* Fiber.join(pending))).toBe(true)
  }),
)

it.effect("changes of one name take turns, those of others do not wait for them", () =>
  Effect.gen(function* () {
    const { models } = yield* registry
    const gate = yield* Deferred.make<void>()
    const log: Array<string> = []
    const slow = Model.each(
      Scale,
      Effect.as(Deferred.await(gate), ({ x }: { readonly x: number }) => ({ y: x })),
    )
    const change = <A, E>(name: string, effect: Effect.Effect<A, E>) =>
      Effect.forkChild(
        Effect.map(Effect.result(effect), ({ _tag }) => void log.push(`${name} ${_tag}`)),
        {
          startImmediately: true,
        },
      )
    const changes = [
      yield* change("load", models.load([Scale], slow)),
      yield* change("load again", models.load([Scale], times(2))),
      yield* change("unload", models.unload("scale")),
      yield* change("replace", models.replace([Scale], times(3))),
    ]
    yield* models.load(
      [Outer],
      Model.each(Outer, ({ x }) => ({ y: x })),
    )
    yield* untilIdle
    expect(log).toEqual([])
    yield* Deferred.succeed(gate, undefined)
    yield* Effect.forEach(changes, Fiber.join)
    expect(log.toSorted()).toEqual(["load Success", "load again Failure", "replace Success", "unload Success"])
    expect(yield* value(models, "scale")).toBe(21)
  }),
)

it.effect("a caller that leaves takes its load back", () =>
  Effect.gen(function* () {
    const { models, index } = yield* registry
    const released: Array<string> = []
    const never = Model.each(
      Scale,
      Effect.andThen(
        Effect.addFinalizer(() => Effect.sync(() => released.push("never"))),
        Effect.as(Effect.never, ({ x }: { readonly x: number }) => ({ y: x })),
      ),
    )
    const loading = yield* Effect.forkChild(models.load([Scale], never), { startImmediately: true })
    yield* untilIdle
    yield* Fiber.interrupt(loading)
    expect([released, index()]).toEqual([["never"], []])
    yield* models.load([Scale], times(2))
    expect(yield* value(models, "scale")).toBe(14)
  }),
)

it.effect("closing the registry unloads loaded models and fails pending loads", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(Layer.fresh(Registry.layer), scope)
    const models = Context.get(context, Registry)
    const log: Array<string> = []
    yield* models.load([Scale], watched(log, "a").layer)
    const never = Model.each(
      Outer,
      Effect.andThen(
        Effect.addFinalizer(() => Effect.sync(() => log.push("-never"))),
        Effect.as(Effect.never, ({ x }: { readonly x: number }) => ({ y: x })),
      ),
    )
    const loading = yield* Effect.forkChild(Effect.flip(models.load([Outer], never)), { startImmediately: true })
    yield* untilIdle
    yield* Scope.close(scope, Exit.void)
    const stopping = { _tag: "Unavailable", message: "Server is stopping" }
    expect(yield* Fiber.join(loading)).toMatchObject(stopping)
    expect(log.toSorted()).toEqual(["+a", "-a", "-never"])
    expect(yield* Effect.flip(models.load([Scale], times(2)))).toMatchObject(stopping)
  }),
)

it.effect("several models of one layer come and go together, what they share goes with the last of them", () =>
  Effect.gen(function* () {
    class Weights extends Context.Service<Weights, { readonly by: number }>()("Weights") {}
    const { models } = yield* registry
    const log: Array<string> = []
    const weights = Layer.effect(
      Weights,
      Effect.acquireRelease(Effect.succeed({ by: 5 }), () => Effect.sync(() => log.push("-weights"))),
    )
    const both = Layer.merge(
      Model.each(
        Scale,
        Effect.map(Weights, ({ by }) => ({ x }: { readonly x: number }) => ({ y: x * by })),
      ),
      Model.each(
        Outer,
        Effect.map(Weights, ({ by }) => ({ x }: { readonly x: number }) => ({ y: x + by })),
      ),
    ).pipe(Layer.provide(weights))
    yield* models.load([Scale, Outer], both)
    expect(yield* Effect.all([value(models, "scale"), value(models, "outer")])).toEqual([35, 12])
    yield* models.unload("scale")
    expect(log).toEqual([])
    expect(yield* value(models, "outer")).toBe(12)
    yield* models.unload("outer")
    expect(log).toEqual(["-weights"])
  }),
)

it.effect("versions stand side by side; a replacement takes the place of all of them", () =>
  Effect.gen(function* () {
    const { models } = yield* registry
    const second = Model.each(Scale2, ({ x }) => ({ y: x * 2 }))
    yield* models.load([Scale], times(1))
    yield* models.load([Scale2], second)
    expect(yield* Effect.all([value(models, "scale"), value(models, "scale", 1)])).toEqual([14, 7])
    yield* models.unload("scale", { version: 1 })
    expect(yield* Effect.flip(value(models, "scale", 1))).toMatchObject({ _tag: "ModelNotFound" })
    yield* models.load([Scale], times(1))
    yield* models.replace([Scale], times(9))
    expect(models.models.map(({ description: { version } }) => version)).toEqual(["1"])
    expect(yield* value(models, "scale")).toBe(63)
  }),
)

it.effect("a caller calls the replacement of its model, and fails until one exists", () =>
  Effect.gen(function* () {
    const { models } = yield* registry
    const context = yield* Layer.build(times(2))
    const scale = Context.get(context, Scale)
    const outer = Model.each(
      Outer,
      Effect.map(
        Scale,
        ({ infer }) =>
          ({ x }: { readonly x: number }) =>
            infer({ x }),
      ),
    )
    yield* models.load([Scale], Layer.succeedContext(context))
    yield* Effect.provideContext(models.load([Outer], outer), context)
    expect(yield* value(models, "outer")).toBe(14)
    yield* models.replace([Scale], times(3))
    expect(yield* Effect.all([value(models, "outer"), Effect.map(scale.infer({ x: 1 }), ({ y }) => y)])).toEqual([
      21, 3,
    ])
    yield* models.unload("scale")
    expect(yield* Effect.flip(value(models, "outer"))).toMatchObject({
      _tag: "ModelNotReady",
      message: "Request for unknown model: 'scale' version 1 is not at ready state",
    })
    yield* models.load(
      [Shape],
      Model.each(Shape, ({ x }) => ({ z: x })),
    )
    expect(yield* Effect.flip(value(models, "outer"))).toMatchObject({
      _tag: "ExecutionFailed",
      message: "model 'scale' was replaced by a model with different inputs or outputs",
    })
    yield* models.replace([Scale], times(4))
    expect(yield* value(models, "outer")).toBe(28)
  }),
)

it.effect("models that are replaced together finish as they were, each with the others that it knows", () =>
  Effect.gen(function* () {
    const { models } = yield* registry
    const log: Array<string> = []
    const make = (factor: number) => {
      const entered = Deferred.makeUnsafe<void>()
      const gate = Deferred.makeUnsafe<void>()
      const outer = Model.each(
        Outer,
        Effect.map(
          Scale,
          ({ infer }) =>
            ({ x }: { readonly x: number }) =>
              Deferred.succeed(entered, undefined).pipe(
                Effect.andThen(Deferred.await(gate)),
                Effect.andThen(infer({ x })),
              ),
        ),
      )
      const recorded = Model.each(
        Scale,
        Effect.as(
          Effect.addFinalizer(() => Effect.sync(() => log.push(`-${factor}`))),
          ({ x }: { readonly x: number }) => ({ y: x * factor }),
        ),
      )
      return { layer: Layer.provideMerge(outer, recorded), entered, open: Deferred.succeed(gate, undefined) }
    }
    const [one, two] = [make(10), make(20)]
    yield* models.load([Outer, Scale], one.layer)
    const pending = yield* Effect.forkChild(value(models, "outer"))
    yield* Deferred.await(one.entered)
    yield* models.replace([Outer, Scale], two.layer)
    yield* untilIdle
    expect(log).toEqual([])
    yield* Effect.all([one.open, two.open])
    expect(yield* Effect.all([Fiber.join(pending), value(models, "outer")])).toEqual([70, 140])
    yield* untilIdle
    expect(log).toEqual(["-10"])
  }),
)

it.effect("a handler loads and unloads; one that unloads itself does not wait for itself", () =>
  Effect.gen(function* () {
    const { models } = yield* registry
    const log: Array<string> = []
    const manager = Model.each(
      Outer,
      Effect.gen(function* () {
        const registry = yield* Registry
        yield* Effect.addFinalizer(() => Effect.sync(() => log.push("-outer")))
        return ({ x }: { readonly x: number }) =>
          Effect.gen(function* () {
            if (x === 0) yield* registry.unload("outer")
            else yield* registry.replace([Scale], times(x))
            return { y: log.length }
          })
      }),
    )
    yield* Effect.provideService(models.load([Outer], manager), Registry, models)
    const infer = (x: number) => models.infer("outer", { x: Tensor.make("INT32", [1], Int32Array.of(x)) })
    yield* infer(3)
    expect(yield* value(models, "scale")).toBe(21)
    yield* infer(5)
    expect(yield* value(models, "scale")).toBe(35)
    expect((yield* infer(0))["y"]?.data[0]).toBe(0)
    yield* untilIdle
    expect([log, models.models.map(({ description: { name } }) => name)]).toEqual([["-outer"], ["scale"]])
  }),
)

it.effect("code may load models while loading, and gets an error instead of a deadlock", () =>
  Effect.gen(function* () {
    const { models } = yield* registry
    const loads = (change: (registry: Registry["Service"]) => Effect.Effect<void, { readonly message: string }>) =>
      Model.each(
        Outer,
        Effect.gen(function* () {
          yield* change(yield* Registry)
          return ({ x }: { readonly x: number }) => ({ y: x })
        }),
      ).pipe(Layer.provide(Registry.layer))
    yield* models.load(
      [Outer],
      loads((registry) => registry.load([Scale], times(2))),
    )
    expect(yield* value(models, "scale")).toBe(14)
    const itself = loads((registry) => registry.unload("outer"))
    expect(yield* Effect.flip(models.replace([Outer], itself))).toMatchObject({
      _tag: "Unavailable",
      message:
        "model 'outer' is being loaded or unloaded, and code that runs as part of a load or unload cannot wait for it",
    })
    expect(yield* value(models, "outer")).toBe(7)
  }),
)

it.effect("the repository loads and unloads its models with explicit control; otherwise they stay", () =>
  Effect.gen(function* () {
    const { models, served } = yield* registry
    const server = new ModelStore()
    const { model } = Context.get(yield* Layer.build(times(2)), Scale)
    const stored = () => server.serve("scale", [ModelVersion.ready(model, "repository")])
    const controlCalls: Array<unknown> = []
    const control: Control = {
      load: (name, overrides) =>
        Effect.sync(() => {
          controlCalls.push([name, overrides])
          stored()
        }),
      unload: (name) =>
        Effect.sync(() => {
          controlCalls.push(name)
          server.serve(name, [])
        }),
    }
    let explicit: Control | undefined
    yield* served.include(server, () => explicit)
    stored()
    for (const change of [
      models.load([Scale2], Layer.succeed(Scale2, Context.get(yield* Layer.build(times(2)), Scale))),
      models.unload("scale"),
    ]) {
      expect(yield* Effect.flip(change)).toMatchObject({
        _tag: "InvalidRequest",
        message: "model 'scale' belongs to the model repository, which loads and unloads it",
      })
    }
    expect(yield* Effect.flip(models.loadStored("scale"))).toMatchObject({
      _tag: "Unavailable",
      message: "no model repository with explicit model control is configured",
    })
    explicit = control
    yield* models.unload("scale")
    expect(models.isReady("scale")).toBe(false)
    yield* models.loadStored("scale", { config: "{}" })
    expect(yield* value(models, "scale")).toBe(14)
    expect(controlCalls).toEqual(["scale", ["scale", { config: "{}", files: new Map() }]])
  }),
)

it.effect("failures that the index remembers are bounded", () =>
  Effect.gen(function* () {
    const { models, index } = yield* registry
    for (let version = 1; version <= 120; version++) {
      class Bad extends Model.Service<Bad>()("bad", { ...fields, version }) {}
      const layer = Model.each(
        Bad,
        Effect.as(Effect.fail("no"), ({ x }: { readonly x: number }) => ({ y: x })),
      )
      yield* Effect.flip(models.load([Bad], layer))
    }
    const versions = index().map(({ version }) => Number(version))
    expect([versions.length, versions.at(0), versions.at(-1)]).toEqual([100, 21, 120])
  }),
)
