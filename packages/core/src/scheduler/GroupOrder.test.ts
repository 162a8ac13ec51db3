/** Requests of several groups in the order of arrival: one that cannot join the waiting batch sends it off. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { type QueueingOptions, resolve } from "../model/QueuePolicy.ts"
import { harness } from "./Scheduler.fixture.ts"

/** The id of a request is its group; batches wait for up to 10 s. Any queueing option takes a PolicyQueue. */
const waiting = Effect.fnUntraced(function* (queueing: QueueingOptions, options: Parameters<typeof harness>[0] = {}) {
  const made = yield* harness({
    queueing: resolve("m", queueing),
    groupKey: ({ id }) => id,
    groupOrder: "arrival",
    maxQueueDelay: 10e9,
    ...options,
  })
  const submit = Effect.fnUntraced(function* (id: string, rows = 1) {
    yield* made.send(rows, { id })
    yield* made.settle
  })
  const ids = () => made.runs.map(({ batch }) => batch.requests.map(({ id }) => id).join("+"))
  return { ...made, submit, ids }
})

const queues: ReadonlyArray<readonly [name: string, queueing: QueueingOptions]> = [
  ["without policies", {}],
  ["with policies", { allowTimeoutOverride: true }],
]

for (const [name, queueing] of queues) {
  it.effect(`a+b => a at once, b after its delay (${name})`, () =>
    Effect.gen(function* () {
      const { submit, ids, complete } = yield* waiting(queueing)
      yield* submit("a")
      expect(ids()).toEqual([])
      yield* submit("b")
      expect(ids()).toEqual(["a"])
      yield* complete(0)
      expect(ids()).toEqual(["a"])
      yield* TestClock.adjust("10 seconds")
      expect(ids()).toEqual(["a", "b"])
    }),
  )

  it.effect(`a+a+b+a => a+a,b,a: no request overtakes another (${name})`, () =>
    Effect.gen(function* () {
      const { submit, ids, complete } = yield* waiting(queueing)
      for (const id of ["a", "a", "b", "a"]) yield* submit(id)
      yield* complete(0)
      yield* TestClock.adjust("10 seconds")
      yield* complete(1)
      expect(ids()).toEqual(["a+a", "b", "a"])
    }),
  )

  it.effect(`a+b+a+a => a,b,a+a while the instance works, without a delay (${name})`, () =>
    Effect.gen(function* () {
      const { submit, ids, complete } = yield* waiting(queueing, { maxQueueDelay: 0 })
      for (const id of ["a", "b", "a", "a"]) yield* submit(id)
      for (const run of [0, 1, 2]) yield* complete(run)
      expect(ids()).toEqual(["a", "b", "a+a"])
    }),
  )
}

it.effect("a+a+a+b => a+a,a (preferred 2): the preferred size first, then what b has cut off", () =>
  Effect.gen(function* () {
    const { submit, ids, complete } = yield* waiting({}, { preferredBatchSizes: [2], concurrency: 1 })
    yield* submit("first", 4)
    for (const id of ["a", "a", "a", "b"]) yield* submit(id)
    yield* complete(0)
    yield* complete(1)
    expect(ids()).toEqual(["first", "a+a", "a"])
  }),
)
