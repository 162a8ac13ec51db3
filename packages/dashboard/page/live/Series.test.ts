import { expect, it } from "vitest"
import type { LiveStep, ModelStep } from "../../src/live/LiveStep.ts"
import * as Series from "./Series.ts"

const process: LiveStep["process"] = {
  cpu: 0,
  memory: 0,
  heap: 0,
  buffers: 0,
  delayMax: 0,
  delayP99: 0,
  connections: 0,
  inFlight: 0,
  held: 0,
}

const step = (index: number, ...models: ReadonlyArray<ModelStep>): LiveStep => ({
  index,
  time: index * 1000,
  millis: 1000,
  process,
  models,
})

const a = { name: "a", version: "1" }
const b = { name: "b", version: "1" }

const steps = [
  step(1, { ...a, requests: 10, rows: 10, batches: [1, 10], latency: [100, 10], parts: [100, 10, 50, 20] }),
  step(2),
  step(
    3,
    {
      ...a,
      requests: 2,
      errors: { REJECTED: 1 },
      refusals: { full: 1 },
      rows: 8,
      batches: [4, 2],
      queue: 3,
      oldest: 7,
    },
    { ...b, requests: 100, latency: [120, 100], queue: 2, oldest: 9, busy: 0.5 },
  ),
]

it("sums requests and failures of all models, or of one", () => {
  expect(Series.rates(steps, undefined)).toEqual([
    [10, 0, 102],
    [0, 0, 1],
  ])
  expect(Series.rates(steps, b)).toEqual([
    [0, 0, 100],
    [0, 0, 0],
  ])
})

it("counts a late step as long as it was", () => {
  expect(Series.rates([{ ...step(1, { ...a, requests: 10 }), millis: 2000 }], a)).toEqual([[5], [0]])
})

it("has no latency for a second without requests", () => {
  const [p50 = []] = Series.latencies(steps, undefined)
  expect(p50[1]).toBeNull()
  expect(p50[2]).toBeGreaterThan(p50[0] ?? 0)
})

it("adds queues, and takes the oldest of their requests", () => {
  expect(Series.queues(steps, undefined)).toEqual([
    [0, 0, 5],
    [0, 0, 9],
  ])
})

it("sums a window: batches by size, errors by reason, mean parts of a timed request", () => {
  const totals = Series.totals(steps, a)
  expect(totals).toMatchObject({ requests: 12, failures: 1, rows: 18, executions: 12, parts: [10, 1, 5, 2] })
  expect(totals.batches).toEqual([
    [1, 10],
    [4, 2],
  ])
  expect([...totals.reasons]).toEqual([
    ["REJECTED", 1],
    ["queue: full", 1],
  ])
})

it("has no figures without steps", () => {
  expect(Series.totals([], undefined)).toMatchObject({
    requests: 0,
    perSecond: 0,
    quantiles: [undefined, undefined, undefined],
  })
})

it("keeps the steps of the last seconds", () => {
  expect(Series.window(steps, 2).map(({ index }) => index)).toEqual([2, 3])
  expect(Series.window([], 2)).toEqual([])
})

it("lists the busiest model first", () => {
  expect(Series.activeModels(steps).map(({ name }) => name)).toEqual(["b", "a"])
})
