import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Count extends Model.Service<Count>()("count", {
  inputs: { BY: Tensor.scalar("INT32") },
  outputs: { COUNT: Tensor.scalar("INT32") },
  sequence: { maxIdle: "10 seconds" },
}) {}

/** Records the life of the resources of sequences. */
const recorded = () => {
  const log: Array<string> = []
  const layer = Model.perSequence(Count, ({ id, reason }) =>
    Effect.gen(function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => log.push(`open ${id}`)),
        () => Effect.sync(() => log.push(`close ${id}: ${reason()}`)),
      )
      let count = 0
      return ({ BY }: { readonly BY: number }) => {
        if (BY === 0) throw new Error("by nothing")
        return { COUNT: (count += BY) }
      }
    }),
  )
  return { log, layer }
}

it.effect("each sequence has a handler, which is released at its end", () => {
  const { log, layer } = recorded()
  return Effect.gen(function* () {
    const count = yield* Count
    const one = yield* count.session({ id: "one" })
    yield* Effect.gen(function* () {
      const two = yield* count.session({ id: "two" })
      expect(yield* one.infer({ BY: 1 })).toEqual({ COUNT: 1 })
      expect(yield* two.infer({ BY: 5 })).toEqual({ COUNT: 5 })
      expect(yield* one.infer({ BY: 1 })).toEqual({ COUNT: 2 })
    }).pipe(Effect.scoped)
    yield* one.end({ BY: 1 })
    yield* Effect.yieldNow
    expect(log).toEqual(["open one", "open two", "close two: ended", "close one: ended"])
  }).pipe(Effect.provide(layer), Effect.scoped)
})

it.effect("a sequence that expires releases its handler", () => {
  const { log, layer } = recorded()
  return Effect.gen(function* () {
    const session = yield* (yield* Count).session({ id: "one" })
    yield* session.infer({ BY: 1 })
    yield* TestClock.adjust("10 seconds")
    expect(log).toEqual(["open one", "close one: expired"])
  }).pipe(Effect.provide(layer), Effect.scoped)
})

it.effect("a START with the id of a live sequence replaces its handler", () => {
  const { log, layer } = recorded()
  return Effect.gen(function* () {
    const count = yield* Count
    const [one, again] = yield* Effect.all([count.session({ id: "one" }), count.session({ id: "one" })])
    expect(yield* one.infer({ BY: 2 })).toEqual({ COUNT: 2 })
    expect(yield* again.infer({ BY: 1 })).toEqual({ COUNT: 1 })
    expect(log.toSorted()).toEqual(["close one: replaced", "open one", "open one"])
  }).pipe(Effect.provide(layer), Effect.scoped)
})

it.effect("a sequence with a cancelled request releases its handler", () =>
  Effect.gen(function* () {
    const [isRunning, mayEnd, isClosed] = [
      yield* Deferred.make<void>(),
      yield* Deferred.make<void>(),
      yield* Deferred.make<string | undefined>(),
    ]
    const layer = Model.perSequence(Count, ({ reason }) =>
      Effect.gen(function* () {
        yield* Effect.addFinalizer(() => Deferred.succeed(isClosed, reason()))
        return ({ BY }: { readonly BY: number }) =>
          Deferred.succeed(isRunning, undefined).pipe(Effect.andThen(Deferred.await(mayEnd)), Effect.as({ COUNT: BY }))
      }),
    )
    const count = yield* Testing.model(layer)
    const send = (start: boolean) =>
      Effect.forkChild(
        count.inferJson({
          parameters: { sequence_id: "one", sequence_start: start },
          inputs: [{ name: "BY", datatype: "INT32", shape: [1], data: [1] }],
        }),
        { startImmediately: true },
      )
    const running = yield* send(true)
    yield* Deferred.await(isRunning)
    yield* Fiber.interrupt(yield* send(false))
    yield* Deferred.succeed(mayEnd, undefined)
    expect(yield* Fiber.join(running)).toMatchObject({ outputs: [{ data: [1] }] })
    expect(yield* Deferred.await(isClosed)).toBe("cancelled")
  }).pipe(Effect.scoped),
)

it.effect("a model that unloads releases the handlers of its live sequences", () => {
  const { log, layer } = recorded()
  return Effect.gen(function* () {
    yield* Effect.gen(function* () {
      const session = yield* (yield* Count).session({ id: "one" })
      yield* session.infer({ BY: 1 })
    }).pipe(Effect.provide(layer))
    expect(log).toEqual(["open one", "close one: stopped"])
  }).pipe(Effect.scoped)
})

it.effect("a handler that cannot be made fails its request, and the next one tries again", () => {
  let isBroken = true
  const log: Array<string> = []
  const layer = Model.perSequence(Count, ({ reason }) =>
    Effect.gen(function* () {
      yield* Effect.addFinalizer(() => Effect.sync(() => log.push(`released: ${reason()}`)))
      if (isBroken) return yield* Effect.fail(new Error("no device"))
      return ({ BY }: { readonly BY: number }) => ({ COUNT: BY })
    }),
  )
  return Effect.gen(function* () {
    const session = yield* (yield* Count).session()
    const { message } = yield* Effect.flip(session.infer({ BY: 1 }))
    expect(message).toContain("no device")
    expect(log).toEqual(["released: failed"])
    isBroken = false
    expect(yield* session.infer({ BY: 1 })).toEqual({ COUNT: 1 })
  }).pipe(Effect.provide(layer), Effect.scoped)
})

it.effect("a plain function makes handlers too", () => {
  const layer = Model.perSequence(Count, () => {
    let count = 0
    return ({ BY }) => Promise.resolve({ COUNT: (count += BY) })
  })
  return Effect.gen(function* () {
    const session = yield* (yield* Count).session()
    expect(yield* session.infer({ BY: 1 })).toEqual({ COUNT: 1 })
    expect(yield* session.infer({ BY: 1 })).toEqual({ COUNT: 2 })
  }).pipe(Effect.provide(layer), Effect.scoped)
})
