import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result } from "effect"
import { KeyedLock } from "./KeyedLock.ts"

const refused = (name: string) =>
  `model '${name}' is being loaded or unloaded, and code that runs as part of a load or unload cannot wait for it`

/** A lock, changes that block until the test releases them, and their starts and ends in order. */
const harness = Effect.sync(() => {
  const lock = new KeyedLock()
  const log: Array<string> = []
  const hold = Effect.fnUntraced(function* (label: string, names: ReadonlyArray<string>) {
    const gate = yield* Deferred.make<void>()
    const work = Effect.sync(() => log.push(`+${label}`)).pipe(
      Effect.andThen(Deferred.await(gate)),
      Effect.ensuring(Effect.sync(() => log.push(`-${label}`))),
    )
    const fiber = yield* Effect.forkChild(lock.hold(names, work), { startImmediately: true })
    const end = Effect.andThen(Deferred.succeed(gate, undefined), Fiber.await(fiber))
    return { end, interrupt: Fiber.interrupt(fiber) }
  })
  return { lock, log, hold }
})

describe("changes of one name", () => {
  it.effect("run one after the other, in the order in which they were requested", () =>
    Effect.gen(function* () {
      const { hold, log } = yield* harness
      const first = yield* hold("first", ["a"])
      const second = yield* hold("second", ["a"])
      const third = yield* hold("third", ["a"])
      expect(log).toEqual(["+first"])
      yield* first.end
      yield* second.end
      yield* third.end
      expect(log).toEqual(["+first", "-first", "+second", "-second", "+third", "-third"])
    }),
  )

  it.effect("that are interrupted while they wait leave their place to the next", () =>
    Effect.gen(function* () {
      const { hold, log } = yield* harness
      const first = yield* hold("first", ["a"])
      const second = yield* hold("second", ["a"])
      const third = yield* hold("third", ["a"])
      yield* second.interrupt
      yield* first.end
      yield* third.end
      expect(log).toEqual(["+first", "-first", "+third", "-third"])
    }),
  )

  it.effect("let the next one go on also where they fail or are interrupted", () =>
    Effect.gen(function* () {
      const { lock, hold, log } = yield* harness
      yield* Effect.flip(lock.hold(["a"], Effect.fail("broken")))
      const first = yield* hold("first", ["a"])
      const second = yield* hold("second", ["a"])
      yield* first.interrupt
      yield* second.end
      expect(log).toEqual(["+first", "-first", "+second", "-second"])
    }),
  )
})

describe("changes of several names", () => {
  it.effect("wait for none but those that share one of them", () =>
    Effect.gen(function* () {
      const { hold, log } = yield* harness
      const first = yield* hold("a", ["a"])
      const other = yield* hold("c", ["c"])
      const both = yield* hold("ab", ["b", "a"])
      expect(log).toEqual(["+a", "+c"])
      yield* first.end
      yield* both.end
      yield* other.end
      expect(log).toEqual(["+a", "+c", "-a", "+ab", "-ab", "-c"])
    }),
  )

  it.effect("in whatever order they name them, never wait for each other", () =>
    Effect.gen(function* () {
      const { lock } = yield* harness
      const turn = (...names: ReadonlyArray<string>) => lock.hold(names, Effect.yieldNow)
      const all = [turn("a", "b", "c"), turn("c", "b", "a"), turn("b", "c"), turn("c", "a"), turn("a", "a")]
      yield* Effect.all(all, { concurrency: "unbounded" })
    }),
  )

  it.effect("may find out which others they need: all are held anew together", () =>
    Effect.gen(function* () {
      const { lock, hold, log } = yield* harness
      const other = yield* hold("b", ["b"])
      const turns: Array<ReadonlyArray<string>> = []
      const fiber = yield* Effect.forkChild(
        lock.holdAll(new Set(["a"]), (held) =>
          Effect.sync(() => {
            turns.push([...held])
            return held.has("c") ? undefined : new Set([held.has("b") ? "c" : "b"])
          }),
        ),
        { startImmediately: true },
      )
      // It has released its names in between, so this one is ahead of it.
      const ahead = yield* hold("c", ["c"])
      expect(turns).toEqual([["a"]])
      yield* other.end
      yield* ahead.end
      yield* Fiber.join(fiber)
      expect(turns).toEqual([["a"], ["a", "b"], ["a", "b", "c"]])
      expect(log).toEqual(["+b", "+c", "-b", "-c"])
    }),
  )
})

describe("a change within a change", () => {
  it.effect("may hold other names", () =>
    Effect.gen(function* () {
      const { lock } = yield* harness
      expect(yield* lock.hold(["a"], lock.hold(["b"], Effect.succeed("done")))).toBe("done")
    }),
  )

  it.effect("is refused the name that the outer one holds, which would wait for itself", () =>
    Effect.gen(function* () {
      const { lock } = yield* harness
      const failure = yield* Effect.flip(lock.hold(["a"], lock.hold(["a"], Effect.void)))
      expect(failure).toMatchObject({ _tag: "Unavailable", message: refused("a") })
      yield* lock.hold(["a"], Effect.void)
    }),
  )

  it.effect("is refused where two changes would wait for each other, and the other one goes on", () =>
    Effect.gen(function* () {
      const { lock } = yield* harness
      const [atA, atB] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const within = (name: string, started: Deferred.Deferred<void>, other: Deferred.Deferred<void>, next: string) =>
        lock.hold(
          [name],
          Effect.gen(function* () {
            yield* Deferred.succeed(started, undefined)
            yield* Deferred.await(other)
            return yield* Effect.result(lock.hold([next], Effect.succeed(next)))
          }),
        )
      const both = yield* Effect.all([within("a", atA, atB, "b"), within("b", atB, atA, "a")], { concurrency: 2 })
      const failures = both.filter(Result.isFailure).map(({ failure }) => failure.message)
      expect(failures).toHaveLength(1)
      expect([refused("a"), refused("b")]).toContain(failures[0])
      expect(both.filter(Result.isSuccess)).toHaveLength(1)
    }),
  )

  it.effect("waits for a change that does not wait for it", () =>
    Effect.gen(function* () {
      const { lock, hold, log } = yield* harness
      const other = yield* hold("b", ["b"])
      const fiber = yield* Effect.forkChild(
        lock.hold(
          ["a"],
          lock.hold(
            ["b"],
            Effect.sync(() => log.push("within")),
          ),
        ),
        { startImmediately: true },
      )
      expect(log).toEqual(["+b"])
      yield* other.end
      yield* Fiber.join(fiber)
      expect(log).toEqual(["+b", "-b", "within"])
    }),
  )

  it.effect("goes on where an outer change would need the names of both: that one begins again", () =>
    Effect.gen(function* () {
      const { lock, hold, log } = yield* harness
      const gate = yield* Deferred.make<void>()
      const nested = Effect.andThen(
        Deferred.await(gate),
        lock.hold(
          ["b"],
          Effect.sync(() => log.push("nested")),
        ),
      )
      const outer = yield* Effect.forkChild(lock.hold(["c"], nested), { startImmediately: true })
      const first = yield* hold("first", ["b"])
      const both = yield* hold("both", ["b", "c"])
      // Behind "first" and "both", which then has its turn for b and would wait for c.
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.yieldNow
      yield* first.end
      yield* Fiber.join(outer)
      yield* both.end
      expect(log).toEqual(["+first", "-first", "nested", "+both", "-both"])
    }),
  )

  it.effect("goes on where an outer change holds its name and waits for the other: that one begins again", () =>
    Effect.gen(function* () {
      const { lock, hold, log } = yield* harness
      const gate = yield* Deferred.make<void>()
      const nested = lock.hold(
        ["b"],
        Effect.sync(() => log.push("nested")),
      )
      const outer = yield* Effect.forkChild(lock.hold(["c"], Effect.andThen(Deferred.await(gate), nested)), {
        startImmediately: true,
      })
      const both = yield* hold("both", ["b", "c"])
      const next = yield* hold("next", ["b"])
      expect(log).toEqual([])
      yield* Deferred.succeed(gate, undefined)
      yield* next.end
      yield* Fiber.join(outer)
      yield* both.end
      expect(log).toEqual(["+next", "-next", "nested", "+both", "-both"])
    }),
  )

  it.effect("takes its turn with a name that the outer one shares, and is refused one of those around it", () =>
    Effect.gen(function* () {
      const { lock, log } = yield* harness
      const turn = (label: string, name: string) =>
        lock.hold(
          [name],
          Effect.gen(function* () {
            log.push(`+${label}`)
            yield* Effect.yieldNow
            log.push(`-${label}`)
            return yield* Effect.flip(lock.hold([name], Effect.void))
          }),
        )
      const turns = Effect.all([turn("first", "a"), turn("second", "a"), turn("b", "b")], { concurrency: "unbounded" })
      yield* lock.holdAll(new Set(["a", "b"]), () =>
        Effect.map(turns, (failures) => {
          expect(failures.map(({ message }) => message)).toEqual([refused("a"), refused("a"), refused("b")])
          return undefined
        }),
      )
      expect(log).toEqual(["+first", "+b", "-first", "+second", "-b", "-second"])
    }),
  )

  it.effect("keeps a shared name where it outlives the outer one", () =>
    Effect.gen(function* () {
      const { lock, hold, log } = yield* harness
      const gate = yield* Deferred.make<void>()
      const work = Effect.andThen(
        Deferred.await(gate),
        Effect.sync(() => log.push("nested")),
      )
      const outer = yield* Effect.forkChild(
        lock.holdAll(new Set(["a"]), () =>
          Effect.as(Effect.forkDetach(lock.hold(["a"], work), { startImmediately: true }), undefined),
        ),
        { startImmediately: true },
      )
      const next = yield* hold("next", ["a"])
      expect(log).toEqual([])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(outer)
      yield* next.end
      expect(log).toEqual(["nested", "+next", "-next"])
    }),
  )

  it.effect("that outlives the outer one stands alone", () =>
    Effect.gen(function* () {
      const { lock } = yield* harness
      const gate = yield* Deferred.make<void>()
      // Fibers started during a change keep its context.
      const later = yield* lock.hold(
        ["a"],
        Effect.forkDetach(Effect.andThen(Deferred.await(gate), lock.hold(["a"], Effect.succeed("held")))),
      )
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(later)).toBe("held")
    }),
  )
})
