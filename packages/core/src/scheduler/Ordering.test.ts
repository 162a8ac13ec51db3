/** Responses in the order of their requests, on the test clock: the order of completion and of replies. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import { type QueuePolicyOptions, resolve } from "../model/QueuePolicy.ts"
import * as Fixture from "./Scheduler.fixture.ts"
import * as Tensor from "../Tensor.ts"

/** Two instances with one request each at a time; `told` collects the responses in order. */
const harness = Effect.fnUntraced(function* (options: Omit<QueuePolicyOptions, "timeoutAction"> = {}) {
  const queueing = resolve("m", { ...options, preserveOrdering: true })
  const { maxQueueSize = 100 } = options
  const made = yield* Fixture.harness({ instanceCount: 2, maxBatchSize: 1, queueing, maxQueueSize })
  const replies: Array<string> = []
  const submit = (id: string, deadline?: number) =>
    made.scheduler.submit(Fixture.request(1, { id, deadline }), (outcome) => {
      replies.push(Result.isFailure(outcome) ? `${id}: ${outcome.failure._tag}` : id)
    })
  return { ...made, replies, submit }
})

it.effect("a response that is ready early waits for those ahead", () =>
  Effect.gen(function* () {
    const { submit, replies, complete, settle } = yield* harness()
    for (const id of ["a", "b", "c"]) submit(id)
    yield* settle
    yield* complete(1)
    yield* complete(2)
    expect(replies).toEqual([])
    yield* complete(0)
    expect(replies).toEqual(["a", "b", "c"])
  }),
)

it.effect("a failure waits for its turn too", () =>
  Effect.gen(function* () {
    const { submit, replies, complete, settle, statistics } = yield* harness()
    for (const id of ["a", "b"]) submit(id)
    yield* settle
    yield* complete(1, Exit.fail(new ExecutionFailed({ message: "no" })))
    expect(replies).toEqual([])
    yield* complete(0)
    expect(replies).toEqual(["a", "b: ExecutionFailed"])
    expect(statistics).toMatchObject({ success: { count: 1 }, failures: { BACKEND: 1 } })
  }),
)

it.effect("a request that leaves the queue gets its error at once and blocks no others", () =>
  Effect.gen(function* () {
    const { submit, replies, complete, settle, statistics } = yield* harness({ defaultTimeout: "10 millis" })
    for (const id of ["a", "b"]) submit(id)
    yield* settle
    submit("c")
    const gone = submit("d")
    yield* TestClock.adjust("5 millis")
    submit("e")
    gone()
    yield* TestClock.adjust("5 millis")
    expect(replies).toEqual(["c: QueueTimeout"])
    yield* complete(1)
    yield* complete(2)
    yield* complete(0)
    expect(replies).toEqual(["c: QueueTimeout", "a", "b", "e"])
    expect(statistics).toMatchObject({ success: { count: 3 }, failures: { REJECTED: 1, CANCELED: 1 } })
  }),
)

it.effect("a request that is cancelled while running or waiting gets no response and blocks no others", () =>
  Effect.gen(function* () {
    const { submit, replies, complete, settle, statistics } = yield* harness()
    const [first, second] = [submit("a"), submit("b")]
    submit("c")
    yield* settle
    yield* complete(1)
    yield* complete(2)
    second()
    expect(replies).toEqual([])
    first()
    expect(replies).toEqual(["c"])
    expect(statistics).toMatchObject({ success: { count: 2 }, failures: { CANCELED: 1 } })
  }),
)

it.effect("a deadline does not wait for its turn, and has one answer", () =>
  Effect.gen(function* () {
    const { submit, replies, complete, settle, statistics } = yield* harness()
    submit("a")
    submit("b", 50)
    yield* settle
    yield* complete(1)
    yield* TestClock.adjust("50 millis")
    expect(replies).toEqual(["b: DeadlineExceeded"])
    yield* complete(0)
    yield* TestClock.adjust("1 second")
    expect(replies).toEqual(["b: DeadlineExceeded", "a"])
    expect(statistics).toMatchObject({ success: { count: 2 }, fail: { count: 0 } })
  }),
)

it.effect("a deadline in an instance: one answer, at once", () =>
  Effect.gen(function* () {
    const { submit, replies, settle, statistics } = yield* harness()
    submit("a")
    submit("b", 50)
    yield* settle
    yield* TestClock.adjust("50 millis")
    expect(replies).toEqual(["b: DeadlineExceeded"])
    expect(statistics.failures).toMatchObject({ CANCELED: 1, BACKEND: 0 })
  }),
)

it.effect("answers that wait take room from requests that wait", () =>
  Effect.gen(function* () {
    const { submit, replies, complete, settle } = yield* harness({ maxQueueSize: 2 })
    submit("a")
    submit("b")
    yield* settle
    submit("c")
    yield* complete(1)
    submit("d")
    expect(replies).toEqual([])
    yield* complete(2)
    yield* settle
    submit("e")
    expect(replies).toEqual(["e: QueueFull"])
    yield* complete(0)
    submit("f")
    expect(replies).toEqual(["e: QueueFull", "a", "b", "c"])
  }),
)

it.effect("stop: every request gets an error", () =>
  Effect.gen(function* () {
    const all = yield* Effect.scoped(
      Effect.gen(function* () {
        const { submit, replies, complete, settle } = yield* harness()
        for (const id of ["a", "b", "c", "d"]) submit(id)
        yield* settle
        yield* complete(1)
        return replies
      }),
    )
    expect(all.toSorted()).toEqual(["a: Unavailable", "b", "c: Unavailable", "d: Unavailable"])
  }),
)

class Counts extends Model.Service<Counts>()("counts", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
  batching: { preserveOrdering: true },
}) {}

it.effect("responses of a decoupled model wait until the request ahead is complete", () =>
  Effect.gen(function* () {
    const [gate, started] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const layer = Model.stream(
      Counts,
      ({ TO }) => {
        if (TO !== 2)
          return Stream.concat(
            Stream.fromEffect(Effect.as(Deferred.succeed(started, undefined), { N: 3 })),
            Stream.succeed({ N: 4 }),
          )
        return Stream.concat(Stream.succeed({ N: 1 }), Stream.fromEffect(Effect.as(Deferred.await(gate), { N: 2 })))
      },
      { instances: 2 },
    )
    const seen: Array<number> = []
    yield* Effect.gen(function* () {
      const model = yield* Counts
      const submit = (TO: number) =>
        Effect.forkChild(
          Stream.runForEach(model.stream({ TO }), ({ N }) => Effect.sync(() => seen.push(N))),
          { startImmediately: true },
        )
      const callers = [yield* submit(2), yield* submit(4)]
      const left = yield* submit(9)
      yield* Deferred.await(started)
      yield* TestClock.adjust(0)
      expect(seen).toEqual([1])
      yield* Fiber.interrupt(left)
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach(callers, (caller) => Fiber.join(caller))
    }).pipe(Effect.provide(layer))
    expect(seen).toEqual([1, 2, 3, 4])
  }),
)
