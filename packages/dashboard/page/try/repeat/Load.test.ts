import { expect, it } from "vitest"
import { Refusal } from "../../api/Refusal.ts"
import { histogram, percentile } from "./Latencies.ts"
import { run, summary } from "./Load.ts"

const clock = () => {
  let time = 0
  return () => (time += 1)
}

it("sends all requests, never more than wanted at the same time", async () => {
  let [open, most, sent] = [0, 0, 0]
  const measure = async () => {
    open += 1
    sent += 1
    most = Math.max(most, open)
    await Promise.resolve()
    open -= 1
    return { milliseconds: sent, timing: { phases: [], batch: (sent % 2) + 1 } }
  }
  const result = await run({ requests: 10, concurrency: 3 }, measure, new AbortController().signal, clock(), () => {})
  expect([sent, most, result.latencies.length]).toEqual([10, 3, 10])
  expect([...result.batches.values()].reduce((sum, count) => sum + count)).toBe(10)
})

it("counts errors by kind", async () => {
  let sent = 0
  const measure = () => Promise.reject(new Refusal("no", 503, ++sent % 2 === 0 ? "QueueFull" : undefined))
  const result = await run({ requests: 5, concurrency: 1 }, measure, new AbortController().signal, clock(), () => {})
  expect([...result.errors]).toEqual([
    ["status 503", 3],
    ["QueueFull, status 503", 2],
  ])
  expect(summary(result)).toMatchObject({ done: 5, failed: 5, p50: undefined, mean: undefined, perSecond: 0 })
})

it("stops when it is aborted; what was in flight is no error", async () => {
  const abort = new AbortController()
  const measure = () => {
    abort.abort()
    return Promise.reject(new Error("aborted"))
  }
  const { latencies, errors } = await run({ requests: 9, concurrency: 2 }, measure, abort.signal, clock(), () => {})
  expect([latencies.length, errors.size]).toEqual([0, 0])
})

it("percentiles are values that have been measured", () => {
  const sorted = Array.from({ length: 100 }, (_, index) => index + 1)
  expect([0.5, 0.95, 0.99, 1].map((share) => percentile(sorted, share))).toEqual([50, 95, 99, 100])
  expect([percentile([], 0.5), percentile([7], 0.99)]).toEqual([undefined, 7])
})

it("a histogram counts every value once, with late ones in its last bucket", () => {
  const values = [...Array.from({ length: 99 }, (_, index) => 1 + index / 100), 1000]
  const buckets = histogram(values)
  expect(buckets.reduce((sum, { count }) => sum + count, 0)).toBe(100)
  expect(buckets.length).toBeLessThan(40)
  expect(buckets.at(-1)?.to).toBe(1000)
  expect(histogram([])).toEqual([])
  expect(histogram([5, 5]).map(({ count }) => count)).toEqual([2])
  expect(histogram([0]).length).toBe(1)
})
