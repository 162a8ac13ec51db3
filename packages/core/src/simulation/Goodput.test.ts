/** Answers in time under more load than the instances can carry, on the virtual clock of the simulation. */
import { describe, expect, it } from "vitest"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Simulation from "./Simulation.ts"

class Scale extends Model.Service<Scale>()("scale", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
  maxBatchSize: 32,
}) {}

class Single extends Model.Service<Single>()("single", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
}) {}

class Ranked extends Model.Service<Ranked>()("ranked", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
  maxBatchSize: 32,
  batching: { priorities: { levels: 2, default: 2 } },
}) {}

/** Callers that tell their deadline, and callers that leave without telling it, after so many milliseconds. */
type Limit = { readonly timeout: number } | { readonly patience: number }

const limits: ReadonlyArray<readonly [string, Limit]> = [
  ["a deadline", { timeout: 100 }],
  ["callers that leave", { patience: 100 }],
]

const seconds = 5

/** Requests before the load, in milliseconds. */
const first = [0, 100, 200, 300, 400, 500].map((at) => ({ at }))

const overload = (
  model: Simulation.SimulatedModel,
  cost: (rows: number) => number,
  { perSecond, limit, instances = 1 }: { perSecond: number; limit: Limit; instances?: number },
) => {
  const load = Simulation.poisson({ perSecond, seconds, ...limit })
  // Nothing is known, and so nothing is refused, before some batches have ended.
  const traffic = [...first, ...[...load].map((arrival) => ({ ...arrival, at: arrival.at + 1000 }))]
  const [outcome] = Simulation.run(model, { traffic, cost, instances })
  if (outcome === undefined) throw new Error("There is an outcome.")
  const { refused, expired, left, latency } = outcome
  const [answered, requests] = [outcome.answered - first.length, outcome.requests - first.length]
  return {
    ...outcome,
    answered,
    requests,
    inTime: answered / seconds,
    accepted: requests - refused.full - refused.predicted,
    late: expired + left,
    latency,
  }
}

const shapes: ReadonlyArray<readonly [string, Simulation.SimulatedModel, (rows: number) => number, number, number]> = [
  // Name, model, milliseconds of a batch, instances, requests per second that these can answer.
  ["a batching model", Scale, (rows) => 3 + 0.2 * rows, 1, 32_000 / 9.4],
  ["a batching model with two instances", Scale, (rows) => 3 + 0.2 * rows, 2, 64_000 / 9.4],
  ["a slow batching model", Scale, (rows) => 20 + 0.5 * rows, 1, 32_000 / 36],
  ["a model whose rows cost all", Scale, (rows) => 1.5 * rows, 1, 1000 / 1.5],
  ["a model without batches", Single, () => 10, 1, 100],
  ["a model without batches with eight instances", Single, () => 10, 8, 800],
]

describe.each(limits)("with %s", (_, limit) => {
  describe.each([1.2, 2, 5])("at %s times what it can", (times) => {
    it.each(shapes)("%s answers that much in time", (_, model, cost, instances, capacity) => {
      const outcome = overload(model, cost, { perSecond: capacity * times, limit, instances })
      expect(outcome.inTime / capacity).toBeGreaterThan(0.95)
      // Callers that leave are known only once some have left.
      const tolerated = "patience" in limit ? 0.15 : 0.02
      expect(outcome.late).toBeLessThan(tolerated * outcome.accepted)
      expect(outcome.latency.p99).toBeLessThan(100)
    })
  })

  it.each(shapes)("%s refuses nothing below what it can", (_, model, cost, instances, capacity) => {
    const { answered, requests } = overload(model, cost, { perSecond: 0.6 * capacity, limit, instances })
    expect(answered).toBe(requests)
  })
})

it("requests of a level that is ahead do not lower what is answered in time", () => {
  const traffic = [1, 2].flatMap((priority) =>
    [...Simulation.poisson({ perSecond: priority * 3000, seconds: 5, timeout: 100, seed: priority })].map((each) => ({
      ...each,
      priority,
    })),
  )
  const [outcome] = Simulation.run(Ranked, {
    traffic: traffic.toSorted((one, other) => one.at - other.at),
    cost: (rows) => 3 + 0.2 * rows,
  })
  expect((outcome?.answered ?? 0) / 5).toBeGreaterThan(0.95 * (32_000 / 9.4))
})
