import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import * as Backlog from "./Backlog.ts"
import { harness } from "./Scheduler.fixture.ts"

it.effect("full=>refused for as long as what is queued will take, at the pace of what was executed", () =>
  Effect.gen(function* () {
    const { send, settle, complete, setStatus } = yield* harness({ maxQueueSize: 6, maxBatchSize: 2, instanceCount: 2 })
    const fill = Effect.repeat(send(1), { times: 5 })
    const refused = Effect.flatMap(send(1), (fiber) => Effect.flip(Fiber.join(fiber)))
    // Six are queued. Nothing is known yet.
    yield* fill
    expect(yield* refused).toMatchObject({ _tag: "QueueFull", retryAfter: 1000 })
    // They go as three batches of two requests, of 2, 2 and 0 seconds: 4/3 on average.
    yield* settle
    yield* TestClock.adjust("2 seconds")
    for (const run of [0, 1, 2]) yield* complete(run)
    // Two instances are busy with four, six are queued: three batches for two instances.
    yield* Effect.repeat(send(1), { times: 3 })
    yield* settle
    yield* fill
    expect(yield* refused).toMatchObject({ _tag: "QueueFull", retryAfter: 2000 })
    setStatus("m_0_0", "restarting")
    expect(yield* refused).toMatchObject({ retryAfter: 4000 })
    setStatus("m_0_1", "restarting")
    expect(yield* refused).toMatchObject({ retryAfter: 1000 })
  }),
)

it("the estimate is at most a minute and never empty", () => {
  const statistics = new ModelStatistics()
  const compute = { input: 0, infer: 1e9, output: 0 }
  statistics.succeeded(1e9, 0, compute)
  statistics.executed(1, compute, 0)
  expect(Backlog.drainTime(3, 1, statistics)).toBe(3000)
  expect(Backlog.drainTime(1000, 1, statistics)).toBe(60_000)
  expect(Backlog.drainTime(0, 1, statistics)).toBe(1)
})
