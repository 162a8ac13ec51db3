/** Sequences whose callers give them limits of idle time, in a scheduler on the test clock. */
import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { failureOf, sequences } from "./Sequences.fixture.ts"

const oldest = { strategy: { _tag: "oldest", slots: 20_000 } } as const

/** Milliseconds as the value of the parameter. */
const idle = (millis: number) => ({ parameters: { sequence_max_idle: BigInt(millis * 1e3) } })

const lossOf = (fiber: Fiber.Fiber<unknown, object>) =>
  Effect.map(Effect.flip(Fiber.join(fiber)), (error) =>
    "reason" in error && "idleMillis" in error ? [error.reason, error.idleMillis] : error,
  )

it.effect("a sequence with a shorter limit expires before one that was idle first", () =>
  Effect.gen(function* () {
    const { send, drain, queue } = yield* sequences(oldest)
    yield* send("A", "S")
    yield* send("B", "S", idle(200))
    yield* send("C", "S", idle(300))
    yield* drain
    yield* TestClock.adjust(199)
    expect(queue?.counts(0)).toMatchObject({ live: 3 })
    yield* TestClock.adjust(1)
    expect(queue?.counts(0)).toMatchObject({ live: 2, ended: { expired: 1 } })
    expect(yield* lossOf(yield* send("B"))).toEqual(["expired", 200])
    yield* TestClock.adjust(100)
    expect(yield* lossOf(yield* send("C"))).toEqual(["expired", 300])
    yield* TestClock.adjust(699)
    expect(queue?.counts(0)).toMatchObject({ live: 1 })
    yield* TestClock.adjust(1)
    expect(yield* lossOf(yield* send("A"))).toEqual(["expired", 1000])
  }),
)

it.effect("a sequence may have a longer limit, or none, up to that of the model", () =>
  Effect.gen(function* () {
    const { send, drain, queue } = yield* sequences({ ...oldest, maxIdleLimit: Infinity })
    yield* send("A", "S", idle(3_600_000))
    yield* send("B", "S", { parameters: { sequence_max_idle: BigInt(Number.MAX_SAFE_INTEGER) } })
    yield* send("C", "S")
    yield* drain
    yield* TestClock.adjust("1 hour")
    expect(queue?.counts(0)).toMatchObject({ live: 1, ended: { expired: 2 } })
    yield* TestClock.adjust("10000 days")
    yield* send("B", "E")
    yield* drain
    expect(queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 2, ended: 1 } })
  }),
)

it.effect("each request may change the limit of its sequence, and a START begins with that of the model", () =>
  Effect.gen(function* () {
    const { send, drain, queue } = yield* sequences(oldest)
    yield* send("A", "S", idle(100))
    yield* drain
    yield* TestClock.adjust(99)
    yield* send("A", "", idle(500))
    yield* drain
    yield* TestClock.adjust(499)
    yield* send("A")
    yield* drain
    yield* TestClock.adjust(499)
    yield* send("A", "S")
    yield* drain
    yield* TestClock.adjust(999)
    expect(queue?.counts(0)).toMatchObject({ live: 1 })
    yield* TestClock.adjust(1)
    expect(queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 1 } })
  }),
)

it.effect("time in the backlog and in an execution is not idle", () =>
  Effect.gen(function* () {
    const { send, drain, complete, queue } = yield* sequences({ strategy: { _tag: "oldest", slots: 1 } })
    yield* send("A", "S", idle(10))
    yield* send("B", "S", idle(10))
    yield* TestClock.adjust(500)
    yield* complete(0)
    expect(queue?.counts(0)).toMatchObject({ live: 1, backlog: 1 })
    yield* TestClock.adjust(500)
    yield* drain
    expect(queue?.counts(0)).toMatchObject({ live: 1, backlog: 0, ended: { expired: 1 } })
    yield* TestClock.adjust(10)
    expect(queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 2 } })
  }),
)

it.effect.each([
  [0n, "must be an integer of at least 1, in microseconds, but 0 was given"],
  [-5n, "must be an integer of at least 1, in microseconds, but -5 was given"],
  [1.5, "must be an integer of at least 1, in microseconds, but 1.5 was given"],
  ["1s", "must be an integer of at least 1, in microseconds, but 1s was given"],
  [true, "must be an integer of at least 1, in microseconds, but true was given"],
  [
    1_000_001n,
    "must be at most 1000000 microseconds for model 'm', but 1000001 was given. Give less, or raise " +
      "'max_sequence_idle_limit_microseconds' (in code 'maxIdleLimit')",
  ],
  [
    BigInt(Number.MAX_SAFE_INTEGER),
    "must be at most 1000000 microseconds for model 'm', but 9007199254740991 was given. Give less, or raise " +
      "'max_sequence_idle_limit_microseconds' (in code 'maxIdleLimit')",
  ],
] as const)("a wrong limit is refused, and the sequence goes on: %s", ([value, problem]) =>
  Effect.gen(function* () {
    const { send, drain, queue } = yield* sequences(oldest)
    yield* send("A", "S", idle(1000))
    yield* drain
    const refused = yield* send("A", "", { parameters: { sequence_max_idle: value } })
    expect(yield* failureOf(refused)).toBe(`[request id: A2] parameter 'sequence_max_idle' ${problem}`)
    expect(queue?.counts(0)).toMatchObject({ live: 1 })
  }),
)

it.effect("1,000 idle sequences with 1,000 limits expire one by one, each at its time", () =>
  Effect.gen(function* () {
    const { send, drain, settle, queue } = yield* sequences(oldest, { maxQueueSize: 1000 })
    // In no order: 7,919 is a prime number.
    const limits = Array.from({ length: 1000 }, (_, index) => 1 + ((index * 7919) % 1000))
    for (const [index, millis] of limits.entries()) yield* send(`s${index}`, "S", idle(millis))
    yield* drain
    for (let now = 1; now <= 1000; now++) {
      yield* TestClock.adjust(1)
      yield* settle
      if (queue?.counts(0).live !== 1000 - now) expect([now, queue?.counts(0).live]).toEqual([now, 1000 - now])
    }
  }),
)
