/** Iterables as effects: order, waiting, failures, and the end of an iterator that is not over. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import * as Iteration from "./Iteration.ts"

/** Values as promises, and what happens to their iterator. */
const observed = (values: ReadonlyArray<number>) => {
  const events: Array<string> = []
  const generator = async function* () {
    try {
      for (const value of values) {
        events.push(`yields ${value}`)
        yield value
      }
    } finally {
      events.push("closes")
    }
  }
  return { events, iterable: generator() }
}

const run = (iterable: AsyncIterable<number> | Iterable<number>, use: (value: number) => Effect.Effect<void, string>) =>
  Effect.exit(Iteration.forEach(iterable, use, (error) => `thrown: ${error}`))

describe("Iteration", () => {
  it.effect("uses all values in their order, of iterables of both kinds", () =>
    Effect.gen(function* () {
      for (const iterable of [[1, 2, 3], new Set([1, 2, 3]), observed([1, 2, 3]).iterable]) {
        const used: Array<number> = []
        assert.deepStrictEqual(yield* run(iterable, (value) => Exit.succeed(void used.push(value))), Exit.void)
        assert.deepStrictEqual(used, [1, 2, 3])
      }
    }),
  )

  it.effect("asks for the next value after the effect of the last one", () =>
    Effect.gen(function* () {
      const { events, iterable } = observed([1, 2])
      const gate = yield* Deferred.make<void>()
      const used = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        run(iterable, () => Effect.andThen(Deferred.succeed(used, undefined), Deferred.await(gate))),
      )
      yield* Deferred.await(used)
      assert.deepStrictEqual(events, ["yields 1"])
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(yield* Fiber.join(fiber), Exit.void)
      assert.deepStrictEqual(events, ["yields 1", "yields 2", "closes"])
    }),
  )

  it.effect("a failure ends it, and waits for the iterator to close", () =>
    Effect.gen(function* () {
      for (const failure of [Exit.fail("no"), Effect.andThen(Effect.yieldNow, Effect.fail("no"))]) {
        const { events, iterable } = observed([1, 2])
        assert.deepStrictEqual(yield* run(iterable, () => failure), Exit.fail("no"))
        assert.deepStrictEqual(events, ["yields 1", "closes"])
      }
    }),
  )

  it.effect("an exception of the iterator is a failure, one of the use is a defect", () =>
    Effect.gen(function* () {
      const failing = async function* () {
        yield 1
        throw "broken"
      }
      assert.deepStrictEqual(yield* run(failing(), () => Exit.void), Exit.fail("thrown: broken"))
      const { events, iterable } = observed([1])
      const thrown = yield* run(iterable, () => {
        throw "bug"
      })
      assert.deepStrictEqual(thrown, Exit.die("bug"))
      assert.deepStrictEqual(events, ["yields 1", "closes"])
    }),
  )

  it.effect("an interruption closes an iterator that has not answered, without waiting for it", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const never = Promise.withResolvers<IteratorResult<number>>()
      let closed = 0
      const iterable: AsyncIterable<number> = {
        [Symbol.asyncIterator]: () => ({
          next: () => {
            Deferred.doneUnsafe(asked, Effect.void)
            return never.promise
          },
          return: () => {
            closed += 1
            return never.promise
          },
        }),
      }
      const used: Array<number> = []
      const fiber = yield* Effect.forkChild(run(iterable, (value) => Exit.succeed(void used.push(value))))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      never.resolve({ done: false, value: 1 })
      yield* Effect.promise(() => never.promise)
      assert.deepStrictEqual([closed, used], [1, []])
    }),
  )
})
