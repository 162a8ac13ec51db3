/** Requests that could be in time are not refused, whatever was before. On the virtual clock of the simulation. */
import { describe, expect, it } from "vitest"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Simulation from "./Simulation.ts"

const tensors = { inputs: { X: Tensor.scalar("FP32") }, outputs: { X: Tensor.scalar("FP32") }, maxBatchSize: 32 }

class Shared extends Model.Service<Shared>()("shared", tensors) {}

class Waiting extends Model.Service<Waiting>()("waiting", { ...tensors, batching: { maxQueueDelay: "5 millis" } }) {}

/** Evenly spaced times from one time to another, in milliseconds. */
const every = (gap: number, from: number, to: number, rest: Partial<Simulation.Arrival> = {}) =>
  Array.from({ length: Math.floor((to - from) / gap) }, (_, index) => ({ ...rest, at: from + gap * index }))

const run = (options: Simulation.SimulationOptions, model: Simulation.SimulatedModel = Shared) => {
  const [outcome] = Simulation.run(model, options)
  if (outcome === undefined) throw new Error("There is an outcome.")
  return outcome
}

/** The duration of each batch by its number, from 0. */
const byCount = (cost: (batch: number) => number) => {
  let batch = 0
  return () => cost(batch++)
}

const expectAllAnswered = ({ answered, requests }: Simulation.Outcome) => expect(answered).toBe(requests)

describe("answers all requests that are in time", () => {
  it("after a first batch that was slower by far", () => {
    const traffic = [{ at: 0 }, ...every(2, 2001, 3000, { timeout: 50 })]
    expectAllAnswered(run({ traffic, cost: byCount((batch) => (batch === 0 ? 2000 : 10)) }))
  })

  it("after first batches that become faster one by one", () => {
    const traffic = [...every(100, 0, 6000), ...every(2, 6000, 7000, { timeout: 50 })]
    expectAllAnswered(run({ traffic, cost: byCount((batch) => Math.max(10, 2000 / 2 ** batch)) }))
  })

  it("after a single pause", () => {
    const traffic = [...every(20, 0, 2000), ...every(2, 7000, 8000, { timeout: 50 })]
    expectAllAnswered(run({ traffic, cost: byCount((batch) => (batch === 99 ? 5000 : 10)) }))
  })

  it("after a slow period, from the fourth batch on", () => {
    const traffic = [
      ...every(300, 0, 15_000),
      ...every(20, 15_300, 15_360),
      ...every(2, 15_400, 16_000, { timeout: 50 }),
    ]
    expectAllAnswered(run({ traffic, cost: byCount((batch) => (batch < 50 ? 200 : 10)) }))
  })

  it("after a minute without any, at once", () => {
    const burst = Array.from({ length: 64 }, () => ({ at: 90_000, timeout: 50 }))
    const traffic = [...every(300, 0, 15_000), ...burst]
    expectAllAnswered(run({ traffic, cost: byCount((batch) => (batch < 50 ? 200 : 10)) }))
  })

  it("as the first of a slow period was, if it finds a free instance", () => {
    const burst = Array.from({ length: 32 }, () => ({ at: 16_000, timeout: 50 }))
    const traffic = [...every(300, 0, 15_000), ...burst]
    expectAllAnswered(run({ traffic, cost: byCount((batch) => (batch < 50 ? 200 : 10)) }))
  })

  it("of a model whose rows cost all, behind small batches", () => {
    const large = every(100, 0, 5000).map(({ at }, index) => ({ at, rows: 1 + (index % 32) }))
    const traffic = [...large, ...every(1, 5100, 6000, { timeout: 10 })]
    expectAllAnswered(run({ traffic, cost: (rows) => 0.1 + 1.5 * rows - (rows > 1 ? 0.8 * rows : 0) }))
  })

  it("of equal groups, after a time of many groups", () => {
    const mixed = every(2, 0, 2000).map(({ at }, index) => ({ at, group: `${index % 100}` }))
    const traffic = [...mixed, ...every(0.5, 40_000, 41_000), ...every(0.5, 41_000, 42_000, { timeout: 25 })]
    expectAllAnswered(run({ traffic, cost: () => 10 }))
  })

  it("while batches wait for more", () => {
    const traffic = every(3, 0, 3000, { timeout: 30 })
    expectAllAnswered(run({ traffic, cost: () => 10 }, Waiting))
  })

  it("on several instances", () => {
    const traffic = every(0.2, 0, 2000, { timeout: 30 })
    expectAllAnswered(run({ traffic, cost: (rows) => 5 + 0.2 * rows, instances: 3 }))
  })

  it("with durations that vary", () => {
    const traffic = every(2, 0, 20_000, { timeout: 100 })
    expectAllAnswered(run({ traffic, cost: byCount((batch) => [2, 20, 5, 12, 1, 18, 9][batch % 7] ?? 10) }))
  })
})

it("executes a request whose deadline is shorter than an execution, if an instance is free", () => {
  const traffic = [...every(100, 0, 2000), ...every(100, 2000, 4000, { timeout: 5 })]
  expect(run({ traffic, cost: () => 10 })).toMatchObject({ batches: 40, expired: 20, refused: { predicted: 0 } })
})
