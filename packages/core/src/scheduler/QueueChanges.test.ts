/** Requests that leave the queue early, or lose their place, while a batch waits for more: the rest goes if it can. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type QueueingOptions, resolve } from "../model/QueuePolicy.ts"
import type { Request } from "../request/Request.ts"
import { harness } from "./Scheduler.fixture.ts"

/** Preferred sizes 4 and 8, and a delay that no test waits for. */
const waiting = Effect.fnUntraced(function* (queueing: QueueingOptions = {}) {
  const made = yield* harness({
    queueing: resolve("m", queueing),
    maxBatchSize: 8,
    preferredBatchSizes: [4, 8],
    maxQueueDelay: 600e9,
  })
  const submit = Effect.fnUntraced(function* (rows: number, overrides?: Partial<Request>) {
    const caller = yield* made.send(rows, overrides)
    yield* made.settle
    return caller
  })
  return { ...made, submit }
})

it.effect("1+2+2 => 2+2 (preferred 4 and 8) once the queue timeout of the first has passed", () =>
  Effect.gen(function* () {
    const { submit, sizes } = yield* waiting({ allowTimeoutOverride: true })
    const first = yield* submit(1, { parameters: { timeout: 1_000_000n } })
    yield* submit(2)
    yield* submit(2)
    yield* TestClock.adjust("999 millis")
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("1 millis")
    expect(yield* Effect.flip(Fiber.join(first))).toMatchObject({ _tag: "QueueTimeout" })
    expect(sizes()).toEqual(["2+2"])
  }),
)

it.effect("1+2+2 => 2+2 once the first is behind the others (DELAY)", () =>
  Effect.gen(function* () {
    const { submit, sizes } = yield* waiting({ allowTimeoutOverride: true, timeoutAction: "DELAY" })
    yield* submit(1, { parameters: { timeout: 1_000_000n } })
    yield* submit(2)
    yield* submit(2)
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("1 second")
    expect(sizes()).toEqual(["2+2"])
  }),
)

it.effect("1+2+2 => 2+2 once the first is cancelled", () =>
  Effect.gen(function* () {
    const { submit, sizes, settle } = yield* waiting()
    const first = yield* submit(1)
    yield* submit(2)
    yield* submit(2)
    expect(sizes()).toEqual([])
    yield* Fiber.interrupt(first)
    yield* settle
    expect(sizes()).toEqual(["2+2"])
  }),
)

it.effect("1+2+2 => 2+2 once the deadline of the first has passed", () =>
  Effect.gen(function* () {
    const { submit, sizes } = yield* waiting()
    const first = yield* submit(1, { deadline: 1000 })
    yield* submit(2)
    yield* submit(2)
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("1 second")
    expect(yield* Effect.flip(Fiber.join(first))).toMatchObject({ _tag: "DeadlineExceeded" })
    expect(sizes()).toEqual(["2+2"])
  }),
)

it.effect("1+2+2 => 2+2 over two levels, once the queue timeout of the first level has passed", () =>
  Effect.gen(function* () {
    const policies = { 1: { allowTimeoutOverride: true } }
    const { submit, sizes } = yield* waiting({ priorities: { levels: 2, default: 2, policies } })
    yield* submit(1, { parameters: { priority: 1n, timeout: 1_000_000n } })
    yield* submit(2, { parameters: { priority: 1n } })
    yield* submit(2, { parameters: { priority: 2n } })
    expect(sizes()).toEqual([])
    yield* TestClock.adjust("1 second")
    expect(sizes()).toEqual(["2+2"])
  }),
)
