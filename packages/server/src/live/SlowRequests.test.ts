import { maxSlowRequests, slowRequestAge } from "@nereid/dashboard/internal/live/SlowRequest"
import { expect, test } from "vitest"
import { SlowRequests } from "./SlowRequests.ts"

const harness = () => {
  let now = 1_000_000
  const slow = new SlowRequests(() => now)
  const compute = { input: 1e6, infer: 5e6, output: 2e6, batch: 8 }
  /** As a model reports it: only above the threshold. */
  const succeed = (millis: number, id = "") => {
    const total = millis * 1e6
    if (total > slow.threshold) slow.succeeded({ name: "m", version: "1", id, total, queued: total - 8e6, compute })
  }
  const times = () => slow.all().map(({ millis }) => millis)
  const wait = (millis: number) => void (now += millis)
  return { slow, succeed, times, wait }
}

test("a request has its id, its batch and its parts", () => {
  const { slow, succeed } = harness()
  succeed(20, "a")
  slow.failed({ name: "m", version: "2", id: "b", total: 15e6, reason: "CANCELED" })
  expect(slow.all()).toEqual([
    {
      name: "m",
      version: "1",
      id: "a",
      time: 1_000_000,
      millis: 20,
      outcome: "success",
      batch: 8,
      parts: [12, 1, 5, 2],
    },
    { name: "m", version: "2", id: "b", time: 1_000_000, millis: 15, outcome: "CANCELED", batch: 0 },
  ])
})

test("the slowest stay, the slowest first, whatever their order", () => {
  const { succeed, times } = harness()
  const all = Array.from({ length: 3 * maxSlowRequests }, (_, index) => 10 + ((index * 7) % (3 * maxSlowRequests)))
  for (const millis of all) succeed(millis)
  expect(times()).toEqual(all.toSorted((one, other) => other - one).slice(0, maxSlowRequests))
})

test("a request that is faster than all of them is below the threshold", () => {
  const { slow, succeed } = harness()
  for (let index = 0; index < maxSlowRequests; index++) succeed(20 + index)
  expect(slow.threshold).toBe(20e6)
  expect(slow.review()).toBe(true)
  succeed(20)
  expect(slow.review()).toBe(false)
})

test("old requests are forgotten, and make room for faster ones", () => {
  const { slow, succeed, times, wait } = harness()
  for (let index = 0; index < maxSlowRequests; index++) succeed(20)
  slow.review()
  wait(slowRequestAge)
  succeed(30)
  wait(1)
  expect(slow.review()).toBe(true)
  expect(slow.review()).toBe(false)
  succeed(1)
  expect(times()).toEqual([30, 1])
})

test("a long id is cut off", () => {
  const { slow, succeed } = harness()
  succeed(20, "x".repeat(1000))
  expect(slow.all()[0]?.id).toHaveLength(200)
})
