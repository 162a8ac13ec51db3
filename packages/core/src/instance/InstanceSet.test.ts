/** Instances of a running model that come and go, while its queue and its statistics stay. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { InstanceContext } from "./InstanceContext.ts"
import type { GroupOptions } from "./InstancePlan.ts"
import * as Model from "../Model.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Where extends Model.Service<Where>()("where", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { NAME: Tensor.utf8() },
}) {}

/** Answers with the names of instances once `gate` is open; building the one called `broken` fails. */
const harness = Effect.gen(function* () {
  const alive = new Set<string>()
  let broken = ""
  let gate = yield* Deferred.make<void>()
  const entered: Array<string> = []
  const layer = Model.each(
    Where,
    Effect.gen(function* () {
      const { name: own, gpu } = yield* InstanceContext
      const name = gpu === undefined ? own : `${own} on ${gpu}`
      if (name === broken) return yield* Effect.fail({ message: `${name} is broken` })
      yield* Effect.acquireRelease(
        Effect.sync(() => alive.add(name)),
        () => Effect.sync(() => alive.delete(name)),
      )
      return () => {
        entered.push(name)
        return Effect.as(Deferred.await(gate), { NAME: name })
      }
    }),
    { instances: 1 },
  )
  const { infer, model } = yield* Testing.model(layer, Where)
  const call = Effect.forkChild(
    Effect.map(infer({ X: 1 }), ({ NAME }) => NAME),
    { startImmediately: true },
  )
  return {
    model,
    entered,
    alive: () => [...alive].toSorted(),
    infer: Effect.tap(call, () => TestClock.adjust(0)),
    open: Effect.andThen(
      Effect.suspend(() => Deferred.succeed(gate, undefined)),
      TestClock.adjust(0),
    ),
    shut: Effect.flatMap(Deferred.make<void>(), (next) => Effect.sync(() => (gate = next))),
    break: (name: string) => Effect.sync(() => (broken = name)),
  }
})

/** To the end. */
const regroup = ({ life: { regroup } }: RunningModel, groups: ReadonlyArray<GroupOptions>) =>
  Effect.scoped(Effect.flatMap(regroup?.(groups) ?? Effect.die("no instances"), ({ commit }) => commit))

it.effect("more of them execute what waits in the queue, and those that are alike stay", () =>
  Effect.gen(function* () {
    const { model, infer, alive, entered, open } = yield* harness
    const pending = [yield* infer, yield* infer, yield* infer]
    expect([alive(), entered, model.life.pending()]).toEqual([["where_0_0"], ["where_0_0"], 2])
    yield* regroup(model, [{ count: 2 }, { kind: "GPU", gpus: [1] }])
    yield* TestClock.adjust(0)
    expect(alive()).toEqual(["where_0_0", "where_0_1", "where_1_0 on 1"])
    expect([entered.toSorted(), model.life.pending()]).toEqual([alive(), 0])
    expect(model.life.instanceGroups()).toEqual([
      { name: "where_0", kind: "CPU", count: 2, gpus: [] },
      { name: "where_1", kind: "GPU", count: 1, gpus: [1] },
    ])
    yield* open
    expect((yield* Effect.forEach(pending, Fiber.join)).toSorted()).toEqual(alive())
    expect(model.description.statistics.success.count).toBe(3)
  }),
)

it.effect("those that go answer what they have, and are released behind it; they get nothing more", () =>
  Effect.gen(function* () {
    const { model, infer, alive, entered, open, shut } = yield* harness
    yield* regroup(model, [{ count: 2 }])
    const first = [yield* infer, yield* infer]
    yield* regroup(model, [{ count: 1 }])
    const next = yield* infer
    expect([alive(), entered, model.life.pending()]).toEqual([
      ["where_0_0", "where_0_1"],
      ["where_0_0", "where_0_1"],
      1,
    ])
    yield* open
    expect(yield* Effect.forEach(first, Fiber.join)).toEqual(["where_0_0", "where_0_1"])
    expect([yield* Fiber.join(next), alive()]).toEqual(["where_0_0", ["where_0_0"]])
    yield* shut
    const another = [yield* infer, yield* infer]
    expect(entered.slice(3)).toEqual(["where_0_0"])
    yield* open
    yield* Effect.forEach(another, Fiber.join)
    expect(model.description.statistics.success.count).toBe(5)
  }),
)

it.effect("a failed build changes nothing and releases everything", () =>
  Effect.gen(function* () {
    const harnessed = yield* harness
    const { model, infer, alive, open } = harnessed
    yield* harnessed.break("where_0_2")
    expect(yield* Effect.flip(regroup(model, [{ count: 3 }]))).toEqual({ message: "where_0_2 is broken" })
    expect([alive(), model.life.instanceGroups()]).toMatchObject([["where_0_0"], [{ count: 1 }]])
    yield* open
    expect(yield* Fiber.join(yield* infer)).toBe("where_0_0")
  }),
)

it.effect("releases prepared, unused instances at the end of the scope", () =>
  Effect.gen(function* () {
    const { model, alive } = yield* harness
    const scope = yield* Scope.make()
    const prepared = yield* Scope.provide(model.life.regroup?.([{ count: 2 }]) ?? Effect.die("no instances"), scope)
    expect([prepared, alive()]).toEqual([expect.anything(), ["where_0_0", "where_0_1"]])
    yield* Scope.close(scope, Exit.void)
    expect([alive(), model.life.instanceGroups()]).toMatchObject([["where_0_0"], [{ count: 1 }]])
  }),
)

it.effect("other instances of the same names take the place of those there are", () =>
  Effect.gen(function* () {
    const { model, infer, alive, open } = yield* harness
    yield* regroup(model, [{ kind: "GPU", gpus: [0] }])
    expect([alive(), model.life.instanceGroups()]).toMatchObject([["where_0_0 on 0"], [{ kind: "GPU" }]])
    yield* open
    expect(yield* Fiber.join(yield* infer)).toBe("where_0_0 on 0")
  }),
)
