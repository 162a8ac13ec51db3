/** Models in code whose instances share resources: options, layers, calls of other models, and what is refused. */
import { expect, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as ConfigurationMessage from "../configuration/ConfigurationMessage.ts"
import * as RateLimit from "../limiter/RateLimit.ts"
import { RateLimitError } from "../limiter/RateLimitError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import type { GroupOptions } from "./InstancePlan.ts"

const tensors = { inputs: { X: Tensor.scalar("INT32") }, outputs: { X: Tensor.scalar("INT32") } }

class A extends Model.Service<A>()("a", tensors) {}
class B extends Model.Service<B>()("b", tensors) {}
class C extends Model.Service<C>()("c", tensors) {}

const unit: GroupOptions = { rateLimiter: { resources: [{ name: "R", count: 1 }] } }

/** Models that record the start of their executions, and end them once the gate is open. */
const harness = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const begun: Array<string> = []
  const blocks = (name: string) => (sample: { readonly X: number }) => {
    begun.push(name)
    return Effect.as(Deferred.await(gate), sample)
  }
  return { begun, blocks, open: Effect.andThen(Deferred.succeed(gate, undefined), TestClock.adjust(0)) }
})

const fork = <E, R>(call: Effect.Effect<unknown, E, R>) =>
  Effect.tap(Effect.forkChild(call, { startImmediately: true }), () => TestClock.adjust(0))

it.effect("executions of two models share a resource with the rate limiter, and not without it", () =>
  Effect.gen(function* () {
    for (const [limits, expected] of [
      [RateLimit.layer(), ["a"]],
      [RateLimit.layer({ resources: [{ name: "R", count: 2 }] }), ["a", "b"]],
      [Layer.empty, ["a", "b"]],
    ] as const) {
      const { begun, blocks, open } = yield* harness
      const models = Layer.mergeAll(
        Model.each(A, blocks("a"), { instances: [unit] }),
        Model.each(B, blocks("b"), { instances: [unit] }),
      )
      const [a, b] = yield* Effect.all([A, B]).pipe(Effect.provide(yield* Layer.build(Layer.provide(models, limits))))
      const calls = [yield* fork(a.infer({ X: 1 })), yield* fork(b.infer({ X: 2 }))]
      expect(begun).toEqual(expected)
      yield* open
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual([{ X: 1 }, { X: 2 }])
      expect(begun).toEqual(["a", "b"])
    }
  }),
)

it.effect("a handler calls a model without resources, while another model waits for those of the handler", () =>
  Effect.gen(function* () {
    const { begun, blocks, open } = yield* harness
    const gated = Effect.map(
      B,
      (b) => (sample: { readonly X: number }) => Effect.andThen(blocks("a")(sample), b.infer(sample)),
    )
    const models = Layer.mergeAll(
      Model.each(A, gated, { instances: [unit] }),
      Model.each(C, ({ X }) => ({ X }), { instances: [unit] }),
    ).pipe(Layer.provideMerge(Model.each(B, ({ X }) => ({ X: X + 1 }))), Layer.provide(RateLimit.layer()))
    const [a, c] = yield* Effect.all([A, C]).pipe(Effect.provide(yield* Layer.build(models)))
    const calls = [yield* fork(a.infer({ X: 1 })), yield* fork(c.infer({ X: 3 }))]
    expect(begun).toEqual(["a"])
    yield* open
    expect(yield* Effect.forEach(calls, Fiber.join)).toEqual([{ X: 2 }, { X: 3 }])
  }),
)

it.effect("the configuration shows resources and priority", () =>
  Effect.gen(function* () {
    const resources = [
      { name: "R", count: 1 },
      { name: "G", count: 2, global: true },
    ]
    const instances = [{ rateLimiter: { resources, priority: 3 } }, { rateLimiter: {} }, {}]
    const context = yield* Layer.build(Model.each(A, ({ X }) => ({ X }), { instances }))
    const { instanceGroup } = ConfigurationMessage.make(Context.get(context, A).model)
    expect(instanceGroup.map(({ rateLimiter }) => rateLimiter)).toMatchObject([
      { resources: [{ name: "R", count: 1, global: false }, resources[1]], priority: 3 },
      { resources: [], priority: 0 },
      undefined,
    ])
  }),
)

it.effect("a change of resources replaces an instance, and none of them keeps it", () =>
  Effect.gen(function* () {
    const built: Array<string> = []
    const handler = Effect.sync(() => {
      built.push("built")
      return ({ X }: { readonly X: number }) => ({ X })
    })
    const layer = Layer.provide(Model.each(A, handler, { instances: [unit] }), RateLimit.layer())
    const { model } = Context.get(yield* Layer.build(layer), A)
    const regroup = (groups: ReadonlyArray<GroupOptions>) =>
      Effect.scoped(Effect.flatMap(model.life.regroup?.(groups) ?? Effect.die("no instances"), ({ commit }) => commit))
    yield* regroup([{ rateLimiter: { resources: [{ name: "R", count: 1 }] } }])
    expect(built).toHaveLength(1)
    yield* regroup([{ rateLimiter: { resources: [{ name: "R", count: 2 }] } }])
    expect(built).toHaveLength(2)
    yield* regroup([{ rateLimiter: { resources: [{ name: "R", count: 2 }], priority: 2 } }])
    expect(built).toHaveLength(3)
  }),
)

it.effect("a layer whose resources are not there dies with the reason", () =>
  Effect.gen(function* () {
    const limits = RateLimit.layer({ resources: [] })
    const layer = Layer.provide(
      Model.each(A, ({ X }) => ({ X }), { instances: [unit] }),
      limits,
    )
    const exit = yield* Effect.exit(Layer.build(layer))
    const message =
      'Resource count for "R" is limited to 0 which will prevent scheduling of one or more model instances, the minimum required count is 1'
    expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toEqual(new RateLimitError({ message }))
  }),
)

it("counts and priorities are integers of at least 0", () => {
  const wrong = (rateLimiter: GroupOptions["rateLimiter"]) => () =>
    Layer.build(Model.each(A, ({ X }) => ({ X }), { instances: [{ rateLimiter }] }))
  expect(wrong({ resources: [{ name: "R", count: -1 }] })).toThrow(
    'Model "a": instances[0].rateLimiter, count of resource "R", must be an integer of at least 0, but -1 was given.',
  )
  expect(wrong({ priority: 0.5 })).toThrow(
    'Model "a": instances[0].rateLimiter.priority must be an integer of at least 0, but 0.5 was given.',
  )
})
