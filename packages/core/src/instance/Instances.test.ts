/** Instances of a model in code: their number, their separate services, and the distribution of requests. */
import { expect, it } from "@effect/vitest"
import { Context, Data, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { InstanceContext } from "./InstanceContext.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Where extends Model.Service<Where>()("where", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { NAME: Tensor.utf8() },
}) {}

/** Something that each device has one of. */
class Device extends Context.Service<Device, { readonly id: string }>()("Device") {}

const named = Effect.map(
  Device,
  ({ id }) =>
    () =>
      Effect.delay(Effect.succeed({ NAME: id }), "200 millis"),
)

/** The responses to this number of concurrent requests, and their duration in milliseconds. */
const inferAll = Effect.fnUntraced(function* (layer: Layer.Layer<Where>, requests: number) {
  const { infer } = yield* Testing.model(layer, Where)
  const before = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
  const fiber = yield* Effect.forkChild(
    Effect.all(
      Array.from({ length: requests }, (_, X) => infer({ X })),
      { concurrency: "unbounded" },
    ),
  )
  let took = 0
  while (fiber.pollUnsafe() === undefined) {
    yield* TestClock.adjust("100 millis")
    took = (yield* Effect.clockWith((clock) => clock.currentTimeMillis)) - before
  }
  return { responses: (yield* Fiber.join(fiber)).map(({ NAME }) => NAME).toSorted(), took }
})

const device = (id: string) => Layer.succeed(Device, { id })

it.effect("two instances do two requests at the same time, one instance does one after the other", () =>
  Effect.gen(function* () {
    const sleeping = (instances: number) =>
      Model.each(Where, () => Effect.delay(Effect.succeed({ NAME: "" }), "200 millis"), { instances })
    expect((yield* inferAll(sleeping(2), 2)).took).toBe(200)
    expect((yield* inferAll(sleeping(1), 2)).took).toBe(400)
  }),
)

it.effect("a list of layers: one per instance, and requests go to any free instance", () =>
  Effect.gen(function* () {
    const layer = Model.each(Where, named, { instances: [device("cuda"), device("cpu")] })
    expect(yield* inferAll(layer, 4)).toEqual({ responses: ["cpu", "cpu", "cuda", "cuda"], took: 400 })
  }),
)

it.effect("builds the same layer twice, each in a separate scope that closes when the model unloads", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    let made = 0
    const counted = Layer.effect(
      Device,
      Effect.acquireRelease(
        Effect.sync(() => {
          const id = String((made += 1))
          events.push(`+${id}`)
          return { id }
        }),
        ({ id }) => Effect.sync(() => events.push(`-${id}`)),
      ),
    )
    const layer = Model.each(Where, named, { instances: [counted, { count: 2, layer: counted }] })
    expect((yield* Effect.scoped(inferAll(layer, 3))).responses).toEqual(["1", "2", "3"])
    expect(events).toEqual(["+1", "+2", "+3", "-3", "-2", "-1"])
  }),
)

it.effect("provides the instance context to a handler and its layer", () =>
  Effect.gen(function* () {
    const received: Array<unknown> = []
    const fromContext = Layer.effect(
      Device,
      Effect.map(InstanceContext, ({ kind, gpu }) => ({ id: `${kind}:${gpu}` })),
    )
    const handler = Effect.gen(function* () {
      received.push(yield* InstanceContext)
      const { id } = yield* Device
      return () => ({ NAME: id })
    })
    const instances = [{ layer: fromContext }, { kind: "GPU", gpus: [0, 3], count: 2, layer: fromContext }] as const
    const { model } = yield* Testing.model(Model.each(Where, handler, { instances }), Where)
    const common = { model: "where", version: "1" }
    expect(received).toEqual([
      { ...common, name: "where_0_0", group: 0, index: 0, kind: "CPU", gpu: undefined },
      { ...common, name: "where_1_0", group: 1, index: 0, kind: "GPU", gpu: 0 },
      { ...common, name: "where_1_1", group: 1, index: 1, kind: "GPU", gpu: 0 },
      { ...common, name: "where_1_2", group: 1, index: 2, kind: "GPU", gpu: 3 },
      { ...common, name: "where_1_3", group: 1, index: 3, kind: "GPU", gpu: 3 },
    ])
    expect(model.life.instanceGroups()).toEqual([
      { name: "where_0", kind: "CPU", count: 1, gpus: [] },
      { name: "where_1", kind: "GPU", count: 2, gpus: [0, 3] },
    ])
  }),
)

class NoDevice extends Data.TaggedError("NoDevice")<{ readonly message: string }> {}

it.effect("one that cannot be built is the failure of the model, and the others are released", () =>
  Effect.gen(function* () {
    const released: Array<string> = []
    const held = (id: string) =>
      Layer.effect(
        Device,
        Effect.acquireRelease(Effect.succeed({ id }), () => Effect.sync(() => released.push(id))),
      )
    const broken = Layer.effect(Device, Effect.fail(new NoDevice({ message: "no device 2" })))
    const layer = Model.each(Where, named, { instances: [held("0"), held("1"), broken, held("3")] })
    const failure: NoDevice = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
    expect(failure.message).toBe("no device 2")
    expect(released).toEqual(["1", "0"])
  }),
)

it.effect("initialize runs once per instance, for any number of requests; finalize after running batches", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const handler = Effect.gen(function* () {
      const { name } = yield* InstanceContext
      yield* Effect.acquireRelease(
        Effect.sync(() => events.push(`initialize ${name}`)),
        () => Effect.sync(() => events.push(`finalize ${name}`)),
      )
      return ({ X }: { readonly X: number }) => Effect.succeed({ NAME: String(X) })
    })
    const scope = yield* Scope.make()
    const { infer } = yield* Scope.provide(Testing.model(Model.each(Where, handler, { instances: 2 }), Where), scope)
    yield* Effect.forEach(Array.from({ length: 100 }), (_, X) => infer({ X }), { concurrency: "unbounded" })
    expect(events).toEqual(["initialize where_0_0", "initialize where_0_1"])
    yield* Scope.close(scope, Exit.void)
    expect(events.slice(2)).toEqual(["finalize where_0_1", "finalize where_0_0"])
  }),
)

it.effect("a finalize that fails is logged, and the unload goes on", () =>
  Effect.gen(function* () {
    const events: Array<string> = []
    const logger = Logger.layer([Logger.make(({ message }) => void events.push(String(message)))])
    const handler = Effect.gen(function* () {
      const { index } = yield* InstanceContext
      yield* Effect.addFinalizer(() => Effect.sync(() => events.push(`released ${index}`)))
      yield* Effect.addFinalizer(() => (index === 1 ? Effect.die(new Error("stuck")) : Effect.void))
      return () => ({ NAME: "" })
    })
    const closed = Effect.scoped(Layer.build(Model.each(Where, handler, { instances: 2 })))
    yield* Effect.provide(closed, logger)
    expect(events).toEqual(["released 1", "Instance where_0_1 failed while it was released", "released 0"])
  }),
)

it("the layer requires the services of its instances, unless every instance has them", () => {
  const closed: Layer.Layer<Where> = Model.each(Where, named, { instances: [device("a"), { layer: device("b") }] })
  const failing: Layer.Layer<Where, NoDevice> = Model.each(Where, named, {
    instances: [Layer.effect(Device, Effect.fail(new NoDevice({ message: "" })))],
  })
  // @ts-expect-error the second has none
  // @effect-diagnostics-next-line missingLayerContext:off
  const half: Layer.Layer<Where> = Model.each(Where, named, { instances: [device("a"), { count: 2 }] })
  // @ts-expect-error a number gives them nothing
  // @effect-diagnostics-next-line missingLayerContext:off
  const none: Layer.Layer<Where> = Model.each(Where, named, { instances: 2 })
  // @ts-expect-error it may fail
  const silent: Layer.Layer<Where> = failing
  expect([closed, half, none, silent].every(Layer.isLayer)).toBe(true)
})

it("options out of range are found at declaration", () => {
  const given = (instances: Model.InstancesOption) => () => Model.each(Where, () => ({ NAME: "" }), { instances })
  expect(given(0)).toThrow('Model "where": instances must be an integer of at least 1, but 0 was given.')
  expect(given([])).toThrow('Model "where": instances must name at least one, but none was given.')
  expect(given([{ count: 1.5 }])).toThrow("instances[0].count must be an integer of at least 1, but 1.5 was given.")
  expect(given([{}, { kind: "GPU", gpus: [] }])).toThrow(
    "instances[1].gpus must name at least one device, but [] was given.",
  )
  expect(given([{ gpus: [1] }])).toThrow('instances[0].gpus require kind "GPU", but [1] was given.')
  expect(given([{ kind: "GPU", gpus: [-1] }])).toThrow("instances[0].gpus must be an integer of at least 0")
})
