/** Connections with many and with few requests in one queue, on the test clock. Batches have up to four rows. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { plain } from "../model/QueuePolicy.ts"
import type { Request } from "../request/Request.ts"
import { harness, type HarnessOptions } from "./Scheduler.fixture.ts"

const heavy = {}
const light = {}

/** Sends so many requests of one row each, whose ids begin with this name. */
const sender = Effect.fnUntraced(function* (options: HarnessOptions = {}) {
  const all = yield* harness({ maxBatchSize: 1, ...options })
  const sendMany = (name: string, connection: object | undefined, count: number, more: Partial<Request> = {}) =>
    Effect.forEach(Array.from({ length: count }), (_, index) =>
      all.send(1, { id: `${name}${index + 1}`, connection, ...more }),
    )
  const order = () => all.runs.flatMap(({ batch }) => batch.requests.map(({ id }) => id)).join(" ")
  const runAll = Effect.fnUntraced(function* (from: number, count: number) {
    for (let run = from; run < from + count; run++) yield* all.complete(run)
  })
  return { ...all, sendMany, order, runAll }
})

const queueing = plain(100)

describe.each<readonly [string, HarnessOptions]>([
  ["a queue without policies", {}],
  ["a queue with policies", { queueing: { ...queueing, priorityLevels: 1n, defaultPriorityLevel: 1n } }],
])("%s", (_, options) => {
  it.effect("takes connections in turn, and each one's requests in order", () =>
    Effect.gen(function* () {
      const { sendMany, settle, order, runAll } = yield* sender(options)
      yield* sendMany("a", heavy, 5)
      yield* settle
      yield* sendMany("b", light, 2)
      yield* runAll(0, 6)
      expect(order()).toBe("a1 b1 a2 b2 a3 a4 a5")
    }),
  )

  it.effect("takes single requests of many connections in the order of arrival", () =>
    Effect.gen(function* () {
      const { sendMany, settle, order, runAll } = yield* sender(options)
      for (const name of ["a", "b", "c", "d", "e"]) yield* sendMany(name, {}, 1)
      yield* settle
      yield* runAll(0, 4)
      expect(order()).toBe("a1 b1 c1 d1 e1")
    }),
  )

  it.effect("takes requests of any size in the order of arrival if each has its own connection", () =>
    Effect.gen(function* () {
      const { send, sendMany, settle, order, runAll } = yield* sender({ ...options, maxBatchSize: 4 })
      yield* sendMany("first", {}, 1)
      yield* settle
      for (const rows of [4, 1, 3, 2, 4]) yield* send(rows, { id: `${rows}`, connection: {} })
      yield* runAll(0, 4)
      expect(order()).toBe("first1 4 1 3 2 4")
    }),
  )

  it.effect("counts rows: a connection with large requests goes less often", () =>
    Effect.gen(function* () {
      const { send, sendMany, settle, order, runAll } = yield* sender({ ...options, maxBatchSize: 2 })
      yield* sendMany("first", {}, 1)
      yield* settle
      for (const id of ["large1", "large2", "large3"]) yield* send(2, { id, connection: heavy })
      yield* settle
      for (const id of ["small1", "small2", "small3", "small4"]) yield* send(1, { id, connection: light })
      yield* runAll(0, 5)
      expect(order()).toBe("first1 large1 small1 small2 large2 small3 small4 large3")
    }),
  )

  it.effect("a connection that always has one request delays the others by no more than its share", () =>
    Effect.gen(function* () {
      const { send, sendMany, settle, order, complete } = yield* sender(options)
      yield* sendMany("a", heavy, 4)
      yield* settle
      for (let run = 0; run < 6; run++) {
        yield* send(1, { id: `b${run + 1}`, connection: light })
        yield* complete(run)
      }
      expect(order()).toBe("a1 b1 a2 b2 a3 b3 a4")
    }),
  )

  it.effect("requests that leave give their turn back", () =>
    Effect.gen(function* () {
      const { sendMany, settle, order, runAll } = yield* sender(options)
      const first = yield* sendMany("a", heavy, 6)
      yield* settle
      const second = yield* sendMany("b", light, 3)
      yield* Effect.forEach(
        [first[2], second[0]].filter((fiber) => fiber !== undefined),
        Fiber.interrupt,
      )
      yield* runAll(0, 6)
      expect(order()).toBe("a1 a2 b2 b3 a4 a5 a6")
    }),
  )
})

it.effect("a connection with thousands of requests delays another one by the running batch alone", () =>
  Effect.gen(function* () {
    const { sendMany, settle, order, runAll } = yield* sender({ maxQueueSize: 10_000 })
    yield* sendMany("a", heavy, 2000)
    yield* settle
    yield* runAll(0, 3)
    yield* sendMany("b", light, 1)
    yield* runAll(3, 2)
    expect(order()).toBe("a1 a2 a3 a4 b1 a5")
  }),
)

it.effect("a full queue refuses the last request of the connection with the most, not that of another one", () =>
  Effect.gen(function* () {
    const { send, sendMany, settle, order, runAll, statistics } = yield* sender({ maxQueueSize: 4 })
    yield* sendMany("first", heavy, 1)
    yield* settle
    yield* sendMany("a", heavy, 3)
    const last = yield* send(1, { id: "last", connection: heavy })
    const refused = yield* Effect.flip(Fiber.join(yield* send(1, { id: "more", connection: heavy })))
    expect(refused).toMatchObject({ _tag: "QueueFull", message: expect.stringContaining("[request id: more]") })
    yield* sendMany("b", light, 1)
    const displaced = yield* Effect.flip(Fiber.join(last))
    expect(displaced).toMatchObject({ _tag: "QueueFull", message: expect.stringContaining("[request id: last]") })
    expect(statistics.queueRefusals.full).toBe(2)
    yield* runAll(0, 5)
    expect(order()).toBe("first1 b1 a1 a2 a3")
  }),
)

it.effect("a full queue keeps its requests if another connection has about as many", () =>
  Effect.gen(function* () {
    const { send, sendMany, settle, order, runAll, statistics } = yield* sender({ maxQueueSize: 7 })
    yield* sendMany("first", {}, 1)
    yield* settle
    yield* sendMany("a", heavy, 5)
    yield* sendMany("b", light, 2)
    const refused = yield* Effect.flip(Fiber.join(yield* send(1, { id: "more", connection: light })))
    expect(refused).toMatchObject({ _tag: "QueueFull", message: expect.stringContaining("[request id: more]") })
    expect(statistics.queueRefusals.full).toBe(1)
    yield* runAll(0, 8)
    expect(order()).toBe("first1 a1 b1 a2 b2 a3 a4 a5")
  }),
)

it.effect("a full queue takes a request of a connection with nothing in it, whatever that has had executed", () =>
  Effect.gen(function* () {
    const { send, sendMany, settle, order, runAll } = yield* sender({ maxQueueSize: 4 })
    yield* sendMany("first", {}, 1)
    yield* settle
    yield* sendMany("a", heavy, 3)
    yield* send(2, { id: "large", connection: light })
    yield* runAll(0, 3)
    yield* sendMany("b", heavy, 2)
    const last = yield* send(1, { id: "last", connection: heavy })
    yield* send(1, { id: "next", connection: light })
    const displaced = yield* Effect.flip(Fiber.join(last))
    expect(displaced).toMatchObject({ _tag: "QueueFull", message: expect.stringContaining("[request id: last]") })
    yield* runAll(3, 4)
    expect(order()).toBe("first1 a1 large a2 a3 next b1 b2")
  }),
)

it.effect("a request of a connection with few is admitted by its own prediction", () =>
  Effect.gen(function* () {
    const { send, sendMany, settle, complete, statistics } = yield* sender({ maxQueueSize: 1000 })
    for (let run = 0; run < 4; run++) {
      const fiber = yield* send(1)
      yield* settle
      yield* TestClock.adjust("10 millis")
      yield* complete(run)
      yield* Fiber.join(fiber)
    }
    yield* sendMany("a", heavy, 500)
    yield* settle
    yield* send(1, { connection: heavy, deadline: 40 + 100 })
    expect(statistics.queueRefusals.predicted).toBe(1)
    yield* send(1, { connection: light, deadline: 40 + 100 })
    expect(statistics.queueRefusals.predicted).toBe(1)
  }),
)

it.effect("keeps the order of arrival where responses have that order", () =>
  Effect.gen(function* () {
    const { sendMany, settle, order, runAll } = yield* sender({ queueing: { ...queueing, preserveOrdering: true } })
    yield* sendMany("a", heavy, 3)
    yield* settle
    yield* sendMany("b", light, 2)
    yield* runAll(0, 4)
    expect(order()).toBe("a1 a2 a3 b1 b2")
  }),
)
