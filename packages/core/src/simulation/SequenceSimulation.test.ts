/** Sequences in a simulation, and the same sequences in a scheduler on the test clock. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { fromEffect } from "../instance/Instance.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import { noParameters } from "../request/Request.ts"
import { sequences as scheduled } from "../sequence/Sequences.fixture.ts"
import * as Simulation from "./Simulation.ts"

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { X: Tensor.scalar("FP32") },
  maxBatchSize: 4,
}) {}

const run = (
  traffic: Iterable<Simulation.SequenceArrival>,
  policy: Simulation.SequencePolicy,
  options: Partial<Simulation.SequenceSimulationOptions> = {},
) => {
  const [outcome] = Simulation.runSequences(Sums, { traffic, cost: () => 10, policies: [policy], ...options })
  if (outcome === undefined) throw new Error("There is no outcome.")
  return outcome
}

describe("one policy", () => {
  it("oldest: requests of different sequences share batches", () => {
    const outcome = run(Simulation.sequences({ count: 4, requests: 3 }), { strategy: "oldest", slots: 4 })
    expect(outcome).toMatchObject({ sequences: 4, completed: 4, batches: 3, meanRequests: 4, took: 30, busy: 1 })
    expect([...outcome.batchSizes]).toEqual([[4, 3]])
    expect(outcome.backlog).toEqual({ max: 0, mean: 0 })
  })

  it("oldest: sequences beyond the slots wait for the end of others", () => {
    const outcome = run(Simulation.sequences({ count: 4, requests: 3 }), { strategy: "oldest", slots: 2 })
    expect(outcome).toMatchObject({ batches: 6, meanRequests: 2, took: 60, backlog: { max: 2, mean: 1 } })
    expect([outcome.startLatency.p50, outcome.startLatency.max]).toEqual([10, 40])
    expect(outcome.latency.p50).toBe(10)
  })

  it("direct: rows of idle slots are empty", () => {
    const traffic = [
      { at: 0, requests: 2, thinkTime: 100 },
      { at: 1, requests: 3, thinkTime: 5 },
    ]
    const outcome = run(traffic, { strategy: "direct", slots: 2 })
    expect(outcome).toMatchObject({ completed: 2, batches: 5, meanRequests: 1 })
    expect(outcome.meanEmptyRows).toBe(0.6)
  })

  it("a full backlog refuses sequences", () => {
    const traffic = Simulation.sequences({ count: 5, requests: 2 })
    const outcome = run(traffic, { strategy: "oldest", slots: 1 }, { maxBacklog: 1 })
    expect(outcome).toMatchObject({ sequences: 5, completed: 2, refused: 3 })
  })

  it("a sequence whose caller thinks for too long expires", () => {
    const traffic = [{ at: 0, requests: 2, thinkTime: "2 seconds" as const }]
    expect(run(traffic, { strategy: "oldest", slots: 1 })).toMatchObject({ completed: 0, expired: 1 })
    expect(run(traffic, { strategy: "oldest", slots: 1 }, { maxIdle: "3 seconds" })).toMatchObject({ completed: 1 })
    const patient = traffic.map((arrival) => ({ ...arrival, maxIdle: "3 seconds" as const }))
    expect(run(patient, { strategy: "oldest", slots: 1 })).toMatchObject({ completed: 1 })
  })
})

it("generated sequences are equal for equal seeds", () => {
  const options = { count: 20, perSecond: 10, requests: 2, thinkTime: 50 }
  const traffic = [...Simulation.sequences(options)]
  expect(traffic).toEqual([...Simulation.sequences(options)])
  expect(traffic).not.toEqual([...Simulation.sequences({ ...options, seed: 2 })])
})

it.each<readonly [string, () => unknown, string]>([
  ["no requests", () => Simulation.sequences({ count: 1, requests: 0 }), "requests must be an integer of at least 1"],
  ["no slots", () => run([], { strategy: "oldest", slots: 0 }), "slots must be an integer of at least 1"],
  [
    "traffic that runs backwards",
    () =>
      run(
        [2, 1].map((at) => ({ at, requests: 1 })),
        { strategy: "oldest", slots: 1 },
      ),
    "A sequence begins at 1 ms, after one at 2.",
  ],
])("refuses %s", (_, wrong, message) => {
  expect(wrong).toThrow(message)
})

// No two events of this traffic come at the same time, because their order would be undefined.
const cost = 10_007

const policies: ReadonlyArray<Simulation.SequencePolicy> = [
  { strategy: "oldest", slots: 3 },
  { strategy: "oldest", slots: 8 },
  { strategy: "direct", slots: 4 },
  { strategy: "direct", slots: 4, maxQueueDelay: 6011, minSlotUtilization: 0.75 },
  { strategy: "direct", slots: 3, maxQueueDelay: 15_013, minSlotUtilization: 1, instances: 2 },
]

it.effect.each(policies)("executes what the scheduler executes on the test clock: %o", (policy) =>
  Effect.gen(function* () {
    const traffic = Array.from({ length: 20 }, (_, index) => ({
      at: index * 9001 + 1,
      requests: 2 + (index % 4),
      thinkTime: 3019 + (index % 5) * 7043 + index * 101,
    }))
    const rows: Array<number> = []
    const costOf = (size: number) => {
      rows.push(size)
      return cost
    }
    run(traffic, policy, { cost: costOf, maxIdle: "1 hour" })
    const { strategy, slots, maxQueueDelay = 0, minSlotUtilization = 0, instances = 1 } = policy
    const executed: Array<number> = []
    const context = yield* Effect.context<never>()
    const execute = fromEffect(
      context,
      Effect.fnUntraced(function* (batch) {
        executed.push(batch.rows)
        yield* Effect.sleep(cost)
        const outcomes = batch.requests.map(() => Result.succeed({ outputs: [], parameters: noParameters }))
        return { outcomes, inputDuration: 0, outputDuration: 0 }
      }),
    )
    const { send } = yield* scheduled(
      {
        maxIdle: Infinity,
        instanceCount: instances,
        strategy:
          strategy === "oldest"
            ? { _tag: strategy, slots }
            : { _tag: strategy, slots, maxQueueDelay: Number(maxQueueDelay) * 1e6, minSlotUtilization },
      },
      { wrap: () => execute },
    )
    const user = Effect.fnUntraced(function* (index: number, { at, requests, thinkTime }: (typeof traffic)[number]) {
      yield* Effect.sleep(at)
      for (let sent = 0; sent < requests; sent++) {
        if (sent > 0) yield* Effect.sleep(thinkTime)
        yield* Fiber.join(yield* send(String(index), sent === 0 ? "S" : sent === requests - 1 ? "E" : ""))
      }
    })
    const users = yield* Effect.forkChild(
      Effect.forEach(traffic, (one, index) => user(index, one), { concurrency: "unbounded" }),
      { startImmediately: true },
    )
    yield* TestClock.adjust("1 hour")
    yield* Fiber.join(users)
    expect(executed).toEqual(rows)
    expect(rows.length).toBeGreaterThan(20)
  }),
)
