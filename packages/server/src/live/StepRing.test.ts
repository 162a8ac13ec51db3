import type { LiveStep, ModelStep } from "@nereid/dashboard/internal/live/LiveStep"
import { maxRingBytes, maxSteps } from "@nereid/dashboard/internal/live/LiveStep"
import { expect, test } from "vitest"
import { StepRing } from "./StepRing.ts"

const process = {
  cpu: 1,
  memory: 1,
  heap: 1,
  buffers: 1,
  delayMax: 0,
  delayP99: 0,
  connections: 1,
  inFlight: 1,
  held: 0,
}

const stepOf = (index: number, models: ReadonlyArray<ModelStep> = []): LiveStep => ({
  index,
  time: 1_800_000_000_000 + index,
  millis: 1000,
  process,
  models,
})

const indexes = (ring: StepRing): ReadonlyArray<number> => {
  const steps: ReadonlyArray<LiveStep> = JSON.parse(`[${Buffer.concat(ring.chunks()).toString()}]`)
  return steps.map(({ index }) => index)
}

test("the ring has the last steps, as elements of a JSON array", () => {
  const ring = new StepRing(3)
  expect(indexes(ring)).toEqual([])
  for (const index of [1, 2, 3, 4]) expect(JSON.parse(ring.add(stepOf(index)).toString())).toEqual(stepOf(index))
  expect(indexes(ring)).toEqual([2, 3, 4])
})

test("steps that are too large together leave earlier", () => {
  const { length } = JSON.stringify(stepOf(1))
  const ring = new StepRing(100, 2 * length + 2)
  for (const index of [1, 2, 3]) ring.add(stepOf(index))
  expect(indexes(ring)).toEqual([2, 3])
  expect(ring.bytes).toBe(2 * length + 2)
})

const busy = (model: number): ModelStep => ({
  name: `a model with a name ${model}`,
  version: "1",
  requests: 5000,
  rows: 5000,
  batches: [1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 8, 500],
  latency: Array.from({ length: 40 }, (_, index) => 100 + index),
  parts: [1_000_000, 10_000, 5_000_000, 10_000],
  queue: 20,
  oldest: 12,
  busy: 0.987,
})

test("300 models that are all busy fit for a minute, 10 of them for ten minutes", () => {
  const fill = (models: number) => {
    const ring = new StepRing()
    const steps = Array.from({ length: models }, (_, model) => busy(model))
    for (let index = 0; index < 2 * maxSteps; index++) ring.add(stepOf(index, steps))
    return ring
  }
  const many = fill(300)
  expect(many.bytes).toBeLessThanOrEqual(maxRingBytes)
  expect(many.size).toBeGreaterThan(60)
  expect(fill(10).size).toBe(maxSteps)
})
