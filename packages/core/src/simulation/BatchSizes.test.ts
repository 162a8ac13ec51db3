/** The learned limit of a batch beside the best one that can be declared, for shapes of costs, on the virtual clock. */
import { describe, expect, it } from "vitest"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Simulation from "./Simulation.ts"

const tensors = { inputs: { x: Tensor.FP32(1) }, outputs: { y: Tensor.FP32(1) } }

class Half extends Model.Service<Half>()("half", { ...tensors, maxBatchSize: 32 }) {}

class Whole extends Model.Service<Whole>()("whole", { ...tensors, maxBatchSize: 64 }) {}

type Cost = (rows: number) => number

/** `cost` is in milliseconds. */
const shapes: ReadonlyArray<{ readonly name: string; readonly model: Simulation.SimulatedModel; readonly cost: Cost }> =
  [
    { name: "a small fixed part", model: Half, cost: (rows) => 3 + 0.2 * rows },
    { name: "a large fixed part", model: Half, cost: (rows) => 20 + 0.5 * rows },
    { name: "rows that cost all", model: Half, cost: (rows) => 1.5 * rows },
    { name: "rows that cost nothing", model: Half, cost: () => 10 },
    { name: "rows that make each other slower", model: Half, cost: (rows) => 1 + 0.05 * rows * rows },
    {
      name: "rows that make each other a little slower",
      model: Half,
      cost: (rows) => 4 + 0.3 * rows + 0.02 * rows * rows,
    },
    { name: "a cliff", model: Half, cost: (rows) => (rows <= 8 ? 2 + 0.5 * rows : 8 + 2 * rows) },
    { name: "steps", model: Half, cost: (rows) => 2 + 4 * Math.ceil(rows / 8) },
    { name: "saturation", model: Whole, cost: (rows) => Math.max(5, 0.4 * rows) },
    { name: "a fixed part of a third of the deadline", model: Half, cost: (rows) => 30 + 2 * rows },
    { name: "full batches that take the whole deadline", model: Whole, cost: (rows) => 2 + 1.4 * rows },
  ]

const sizes = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]

/** Seconds of load before those that count, and with them. */
const [settle, end] = [2, 4]

/** Requests before the load, in milliseconds: nothing is refused before some batches have ended. */
const first = Array.from({ length: 30 }, (_, index) => ({ at: 50 * index }))

/** Answers in time per second, for each of the largest batch sizes. */
const inTime = (
  model: Simulation.SimulatedModel,
  cost: Cost,
  perSecond: number,
  maxBatchSize: ReadonlyArray<number>,
): ReadonlyArray<number> => {
  const answered = (seconds: number) => {
    const load = Simulation.poisson({ perSecond, seconds, timeout: "100 millis" })
    const traffic = [...first, ...[...load].map((arrival) => ({ ...arrival, at: arrival.at + 2000 }))]
    return Simulation.run(model, { traffic, cost, over: { maxBatchSize } }).map(({ answered }) => answered)
  }
  const before = answered(settle)
  return answered(end).map((count, index) => (count - (before[index] ?? 0)) / (end - settle))
}

describe.each([0.8, 1.2, 2])("at %s times the capacity", (times) => {
  it.each(shapes)("$name: at least 95 % of the best declared size", ({ model, cost }) => {
    const { maxBatchSize } = model.definition
    const declared = sizes.filter((rows) => rows <= maxBatchSize)
    const capacity = Math.max(...declared.filter((rows) => cost(rows) < 70).map((rows) => (1000 * rows) / cost(rows)))
    const [own = 0, ...others] = inTime(model, cost, times * capacity, [maxBatchSize, ...declared])
    expect(own / Math.max(...others)).toBeGreaterThan(0.95)
    // The others are limited by the same rule, so their best is also compared with what the costs allow.
    if (times > 1) expect(own / capacity).toBeGreaterThan(0.8)
  })
})
