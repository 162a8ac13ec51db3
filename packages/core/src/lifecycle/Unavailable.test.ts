/** A model whose layer cannot be built: its reported state, and the release of its resources. */
import { expect, it } from "@effect/vitest"
import { Context, Data, Effect, Exit, Fiber, Layer } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

class NoWeights extends Data.TaggedError("NoWeights")<{ readonly message: string }> {}

it.effect("a failed initialize makes the model unavailable with the reason; its instances are released at once", () =>
  Effect.gen(function* () {
    const released: Array<number> = []
    let built = 0
    const handler = Effect.gen(function* () {
      const index = built++
      yield* Effect.addFinalizer(() => Effect.sync(() => released.push(index)))
      if (index === 1) return yield* new NoWeights({ message: "no weights on device 1" })
      return ({ X }: { readonly X: number }) => ({ X })
    })
    const model = yield* Testing.model(Model.orUnavailable(Echo, Model.each(Echo, handler, { instances: 2 })))
    expect(released).toEqual([1, 0])
    expect(model.model.life.isReady()).toBe(false)
    expect(model.model.life.problem()).toBe("no weights on device 1")
    expect(yield* Effect.flip(model.infer({ X: 1 }, { id: "a" }))).toMatchObject({
      _tag: "ModelNotReady",
      message: "[request id: a] model 'echo' version 1 is unavailable: no weights on device 1",
    })
    expect(model.model.description.statistics.failures.REJECTED).toBe(1)
  }),
)

it.effect("a failed warm-up and a defect are such failures, a layer that can be built is itself", () =>
  Effect.gen(function* () {
    const cold = Model.each(Echo, () => Effect.fail(new NoWeights({ message: "none" })), { warmUp: "zeros" })
    const failed = yield* Testing.model(Model.orUnavailable(Echo, cold))
    expect(failed.model.life.problem()).toMatch(/^model 'echo' version 1 has failed its warm-up on instance echo_0: /)
    const defect = yield* Testing.model(Model.orUnavailable(Echo, Model.each(Echo, Effect.die("a bug"))))
    expect(defect.model.life.problem()).toBe("a bug")
    const good = yield* Testing.model(
      Model.orUnavailable(
        Echo,
        Model.each(Echo, ({ X }) => ({ X })),
      ),
    )
    expect(good.model.life.isReady()).toBe(true)
    expect(yield* good.infer({ X: 1 })).toEqual({ X: 1 })
  }),
)

it.effect("shares its dependencies, which are released with the last user", () =>
  Effect.gen(function* () {
    class Weights extends Context.Service<Weights, { readonly by: number }>()("Weights") {}
    let loads = 0
    let released = 0
    const weights = Layer.effect(
      Weights,
      Effect.acquireRelease(
        Effect.sync(() => ({ by: (loads += 1) })),
        () => Effect.sync(() => (released += 1)),
      ),
    )
    class Scale extends Model.Service<Scale>()("scale", {
      inputs: { X: Tensor.scalar("INT32") },
      outputs: { X: Tensor.scalar("INT32") },
    }) {}
    const scale = Model.each(
      Scale,
      Effect.map(Weights, ({ by }) => ({ X }) => ({ X: X * by })),
    ).pipe(Layer.provide(weights))
    const cold = Model.each(
      Echo,
      Effect.as(Weights, () => Effect.fail("cold")),
      { warmUp: "zeros" },
    )
    const both = Layer.merge(scale, Model.orUnavailable(Echo, cold.pipe(Layer.provide(weights))))
    yield* Effect.scoped(
      Effect.gen(function* () {
        const context = yield* Layer.build(both)
        const { model } = yield* Effect.provideContext(Echo, context)
        const { infer } = yield* Effect.provideContext(Scale, context)
        expect(model.life.problem()).toContain("cold")
        expect(yield* infer({ X: 3 })).toEqual({ X: 3 })
        expect([loads, released]).toEqual([1, 0])
      }),
    )
    expect([loads, released]).toEqual([1, 1])
  }),
)

it.effect("an interruption is not a failure", () =>
  Effect.gen(function* () {
    const layer = Model.orUnavailable(Echo, Model.each(Echo, Effect.never))
    const fiber = yield* Effect.forkChild(Effect.scoped(Layer.build(layer)), { startImmediately: true })
    yield* Fiber.interrupt(fiber)
    expect(fiber.pollUnsafe()).toSatisfy(Exit.hasInterrupts)
  }),
)
