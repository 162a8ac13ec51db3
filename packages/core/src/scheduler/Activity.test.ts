/** The state of queue and instances, and the counts of refusals, as a live view of the server reads them. */
import { expect, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed } from "../error/InferenceError.ts"
import type { Observer } from "../metrics/ModelStatistics.ts"
import { plain } from "../model/QueuePolicy.ts"
import { harness } from "./Scheduler.fixture.ts"

const millis = 1e6

it.effect("an instance is busy from its batch to the end of it, also of a failed one", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, complete } = yield* harness({ instanceCount: 2 })
    expect(scheduler.activity()).toEqual({ oldestNanos: 0, instances: 2, busyNanos: 0 })
    yield* send(1)
    yield* settle
    yield* TestClock.adjust(10)
    expect(scheduler.activity().busyNanos).toBe(10 * millis)
    yield* complete(0, Exit.fail(new ExecutionFailed({ message: "broken" })))
    yield* TestClock.adjust(10)
    expect(scheduler.activity().busyNanos).toBe(10 * millis)
    yield* send(4)
    yield* send(4)
    yield* settle
    yield* TestClock.adjust(5)
    expect(scheduler.activity().busyNanos).toBe(20 * millis)
  }),
)

it.effect("an instance with two batches is busy once", () =>
  Effect.gen(function* () {
    const { scheduler, send, settle, complete } = yield* harness({ concurrency: 2 })
    yield* send(4)
    yield* send(4)
    yield* settle
    yield* TestClock.adjust(10)
    yield* complete(0)
    yield* TestClock.adjust(10)
    yield* complete(1)
    yield* TestClock.adjust(10)
    expect(scheduler.activity().busyNanos).toBe(20 * millis)
  }),
)

it.effect.each([
  { queue: "a plain queue", queueing: undefined },
  { queue: "a queue with policies", queueing: plain(100) },
])("the oldest request is the one that has waited longest: $queue", ({ queueing }) =>
  Effect.gen(function* () {
    const { scheduler, send, settle, complete } = yield* harness({ queueing })
    yield* send(4)
    yield* settle
    expect(scheduler.activity().oldestNanos).toBe(0)
    yield* send(4)
    yield* TestClock.adjust(10)
    yield* send(4)
    yield* TestClock.adjust(5)
    expect(scheduler.activity().oldestNanos).toBe(15 * millis)
    yield* complete(0)
    expect(scheduler.activity().oldestNanos).toBe(5 * millis)
  }),
)

it.effect("refusals are counted by what refused: a full queue, a queue timeout, a deadline", () =>
  Effect.gen(function* () {
    const policy = { ...plain(2).defaultPolicy, defaultTimeout: Duration.millis(20) }
    const { statistics, send, settle } = yield* harness({ queueing: { ...plain(2), defaultPolicy: policy } })
    const { queueRefusals } = statistics
    yield* send(4)
    yield* settle
    yield* send(4, { deadline: 10 })
    yield* send(4)
    yield* send(4)
    yield* settle
    expect(queueRefusals).toEqual({ full: 1, predicted: 0, timeout: 0, deadline: 0 })
    yield* TestClock.adjust(10)
    expect(queueRefusals).toEqual({ full: 1, predicted: 0, timeout: 0, deadline: 1 })
    yield* TestClock.adjust(10)
    expect(queueRefusals).toEqual({ full: 1, predicted: 0, timeout: 1, deadline: 1 })
    yield* send(4, { deadline: 1 })
    yield* settle
    expect(queueRefusals).toEqual({ full: 1, predicted: 0, timeout: 1, deadline: 2 })
  }),
)

it.effect("observers get the id of a request, and the rows of its batch", () =>
  Effect.gen(function* () {
    const { statistics, send, settle, complete } = yield* harness()
    const seen: Array<unknown> = []
    const observer: Observer = {
      succeeded: (_total, _queued, { batch }, id) => seen.push([id, batch]),
      failed: (reason, _total, id) => seen.push([id, reason]),
    }
    statistics.observers.add(observer)
    yield* send(1, { id: "a" })
    yield* send(2, { id: "b" })
    yield* settle
    yield* complete(0)
    yield* send(1, { id: "c" })
    yield* settle
    yield* complete(1, Exit.fail(new ExecutionFailed({ message: "broken" })))
    expect(seen).toEqual([
      ["a", 3],
      ["b", 3],
      ["c", "BACKEND"],
    ])
  }),
)
