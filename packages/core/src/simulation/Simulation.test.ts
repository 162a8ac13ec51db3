import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"
import { Agenda } from "./Agenda.ts"
import * as Simulation from "./Simulation.ts"

const tensors = { inputs: { X: Tensor.scalar("FP32") }, outputs: { X: Tensor.scalar("FP32") } }

class Plain extends Model.Service<Plain>()("plain", { ...tensors, maxBatchSize: 4 }) {}

class Waiting extends Model.Service<Waiting>()("waiting", {
  ...tensors,
  maxBatchSize: 4,
  batching: { maxQueueDelay: "5 millis" },
}) {}

const at = (...times: ReadonlyArray<number>) => times.map((at) => ({ at }))

const only = (outcomes: ReadonlyArray<Simulation.Outcome>): Simulation.Outcome => {
  const [outcome, ...others] = outcomes
  if (outcome === undefined || others.length > 0) throw new Error(`There are ${outcomes.length} outcomes.`)
  return outcome
}

describe("one policy", () => {
  it("a free instance takes what is there, the others wait for its end together", () => {
    const outcome = only(Simulation.run(Plain, { traffic: at(0, 1, 2, 3), cost: (rows) => 10 + rows }))
    expect(outcome).toMatchObject({ requests: 4, answered: 4, batches: 2, meanRows: 2, took: 24, busy: 1 })
    // 0 → 11, then the other three for 13: at 24.
    expect(outcome.latency).toEqual({ p50: 21, p90: 23, p99: 23, max: 23 })
  })

  it("with a delay, requests wait for a batch, and a full batch starts at once", () => {
    const outcome = only(Simulation.run(Waiting, { traffic: at(0, 1, 2, 3, 10), cost: () => 1 }))
    // Four at 3, and the fifth alone once its 5 ms are over.
    expect(outcome).toMatchObject({ batches: 2, meanRows: 2.5, took: 16 })
    expect(outcome.latency).toMatchObject({ p50: 3, max: 6 })
  })

  it("requests of one moment share a batch", () => {
    expect(only(Simulation.run(Plain, { traffic: at(1, 1, 1), cost: () => 1 })).batches).toBe(1)
  })

  it("of a model whose batches are not shared, they do not", () => {
    const Alone = Model.Service()("alone", { ...tensors, maxBatchSize: 4, batching: { shared: false } })
    const outcome = only(Simulation.run(Alone, { traffic: at(1, 1, 1), cost: () => 1 }))
    expect([outcome.batches, outcome.meanRows, outcome.refused.large]).toEqual([3, 1, 0])
  })

  it("groups do not", () => {
    const traffic = ["a", "b", "a"].map((group) => ({ at: 0, group }))
    const outcome = only(Simulation.run(Plain, { traffic, cost: () => 1 }))
    expect([outcome.batches, outcome.took]).toEqual([2, 2])
  })

  it("a deadline between two nanoseconds passes after it", () => {
    const traffic = [0, 1].map((at) => ({ at, timeout: 2 + 3e-7 }))
    expect(only(Simulation.run(Plain, { traffic, cost: () => 10 }))).toMatchObject({ answered: 0, expired: 2 })
  })

  it("two instances have twice the throughput", () => {
    const traffic = Simulation.constant({ perSecond: 1000, seconds: 1, rows: 4 })
    const took = (instances: number) => only(Simulation.run(Plain, { traffic, cost: () => 4, instances })).took
    expect([took(1), took(2)]).toEqual([3997, 2001])
  })

  it("counts whom a full queue refuses, and whose rows are too many", () => {
    class Short extends Model.Service<Short>()("short", {
      ...tensors,
      maxBatchSize: 1,
      batching: { maxQueueSize: 1 },
    }) {}
    const traffic = [...at(0, 1, 2, 3), { at: 4, rows: 2 }]
    const outcome = only(Simulation.run(Short, { traffic, cost: () => 10 }))
    expect(outcome).toMatchObject({ requests: 5, answered: 2, refused: { full: 2, late: 0, large: 1 } })
  })

  it("priorities and times in the queue hold", () => {
    class Queued extends Model.Service<Queued>()("queued", {
      ...tensors,
      maxBatchSize: 1,
      batching: { allowTimeoutOverride: true, priorities: { levels: 2, default: 2, policies: {} } },
    }) {}
    const traffic = [{ at: 0 }, { at: 1, queueTimeout: "5 millis" as const }, { at: 2 }, { at: 3, priority: 1 }]
    const outcome = only(Simulation.run(Queued, { traffic, cost: () => 10 }))
    // 0 → 10; the second leaves at 6; the fourth goes ahead of the third: 10 → 20, 20 → 30.
    expect(outcome.refused.late).toBe(1)
    expect(outcome.latency).toEqual({ p50: 17, p90: 28, p99: 28, max: 28 })
  })

  it("a batch that is filled up costs what it is filled up to", () => {
    class Padded extends Model.Service<Padded>()("padded", { ...tensors, maxBatchSize: 8, batching: { padTo: [4] } }) {}
    const costs: Array<number> = []
    const cost = (rows: number) => {
      costs.push(rows)
      return 1
    }
    const over = { maxBatchSize: [8, 2] }
    const outcomes = Simulation.run(Padded, { traffic: at(0, 0, 0), cost, over })
    expect(costs).toEqual([4, 2, 2])
    expect(outcomes.map(({ meanRows }) => meanRows)).toEqual([3, 1.5])
  })

  it("no traffic makes no batches", () => {
    const outcome = only(Simulation.run(Plain, { traffic: [], cost: () => 1 }))
    expect(outcome).toMatchObject({ requests: 0, answered: 0, batches: 0, meanRows: Number.NaN, busy: 0, took: 0 })
    expect(outcome.latency.p50).toBeNaN()
  })
})

describe("several policies", () => {
  it("tries each with each, on the same traffic", () => {
    const outcomes = Simulation.run(Plain, {
      traffic: Simulation.poisson({ perSecond: 500, seconds: 2 }),
      cost: (rows) => 3 + rows,
      over: { maxQueueDelay: [0, "2 millis"], maxBatchSize: [1, 4], instances: [1, 2] },
    })
    expect(outcomes.map(({ maxBatchSize, instances }) => [maxBatchSize, instances])).toEqual([
      [1, 1],
      [1, 2],
      [4, 1],
      [4, 2],
      [1, 1],
      [1, 2],
      [4, 1],
      [4, 2],
    ])
    expect(new Set(outcomes.map(({ requests }) => requests)).size).toBe(1)
    const [single, , shared] = outcomes
    expect(single?.took).toBeGreaterThan(shared?.took ?? Infinity)
  })

  it("equal seeds give equal traffic, and other seeds other traffic", () => {
    const times = (seed?: number) =>
      [...Simulation.poisson({ perSecond: 50, seconds: 4, ...(seed === undefined ? {} : { seed }) })].map(
        ({ at }) => at,
      )
    expect(times()).toEqual(times())
    expect(times(2)).not.toEqual(times())
    expect(times().length).toBeGreaterThan(150)
    expect(times().length).toBeLessThan(250)
  })
})

it("executes what the model itself executes on the test clock", async () => {
  const WaitingLive = Model.batch(Waiting, ({ X }) => Effect.as(Effect.sleep("10 millis"), { X }))
  const times = Array.from(Simulation.poisson({ perSecond: 300, seconds: 0.2 }), ({ at }) => ({ at: Math.round(at) }))
  const rows: Array<number> = []
  const cost = (size: number) => {
    rows.push(size)
    return 10
  }
  Simulation.run(Waiting, { traffic: times, cost })
  await using model = await Testing.start(WaitingLive)
  const responses: Array<Promise<unknown>> = []
  let now = 0
  for (const { at } of times) {
    for (; now < at; now++) await model.advance(1)
    responses.push(model.infer({ X: at }))
  }
  for (let left = 100; left > 0; left--) await model.advance(1)
  await Promise.all(responses)
  expect(rows).toEqual(model.executions.map((execution) => execution.rows))
})

it.each<[string, Simulation.SimulationOptions, string]>([
  ["traffic that runs backwards", { traffic: at(2, 1), cost: () => 1 }, "A request comes at 1 ms, after one at 2."],
  ["no rows", { traffic: [{ at: 0, rows: 0 }], cost: () => 1 }, "rows must be an integer of at least 1"],
  [
    "no time in the queue",
    { traffic: [{ at: 0, queueTimeout: 0 }], cost: () => 1 },
    "queueTimeout must be longer than 0",
  ],
  ["no instance", { traffic: at(0), cost: () => 1, instances: 0 }, "instances must be an integer of at least 1"],
  ["half a row", { traffic: at(0), cost: () => 1, over: { maxBatchSize: [0.5] } }, "maxBatchSize must be an integer"],
])("refuses %s", (_, options, message) => {
  expect(() => Simulation.run(Plain, options)).toThrow(new RegExp(message))
})

it.each([0, -1, Number.NaN, Infinity])("refuses a rate of %d", (perSecond) => {
  expect(() => Simulation.poisson({ perSecond, seconds: 1 })).toThrow("perSecond must be above 0")
  expect(() => Simulation.constant({ perSecond: 1, seconds: perSecond })).toThrow("seconds must be above 0")
})

it("an agenda keeps the order of time, and of what was noted for the same time", () => {
  const agenda = new Agenda()
  const happened: Array<string> = []
  const note = (name: string) => () => happened.push(`${name}@${agenda.now}`)
  for (const time of [5, 3, 8, 3, 1, 9, 2]) agenda.after(time, note(`e${time}`))
  agenda.after(4, note("never"))()
  agenda.soon(note("soon"))
  agenda.runUntil(3)
  agenda.soon(() => agenda.after(1, note("later")))
  agenda.run()
  expect(happened).toEqual(["soon@0", "e1@1", "e2@2", "e3@3", "e3@3", "later@4", "e5@5", "e8@8", "e9@9"])
})
