import { expect, it } from "vitest"
import { Expiries } from "./Expiries.ts"

it("entries expire at their time, each once, in the order in which they were added", () => {
  const expiries = new Expiries<string>()
  for (const [entry, time] of [
    ["a", 30],
    ["b", 10],
    ["c", 20],
    ["d", 10],
  ] as const) {
    expiries.add(entry, time)
  }
  expect(expiries.earliest).toBe(10)
  expect(expiries.take(9)).toEqual([])
  expect(expiries.take(20)).toEqual(["b", "c", "d"])
  expect(expiries.earliest).toBe(30)
  expect(expiries.take(20)).toEqual([])
  expect(expiries.take(30)).toEqual(["a"])
  expect(expiries.earliest).toBe(Infinity)
})

it("a deleted entry does not expire, wherever it is", () => {
  const expiries = new Expiries<number>()
  const all = [0, 1, 2, 3, 4].map((entry) => expiries.add(entry, 10))
  for (const index of [0, 2, 4, 2]) expiries.delete(all[index])
  expiries.delete(undefined)
  expect(expiries.take(10)).toEqual([1, 3])
  for (const expiry of all) expiries.delete(expiry)
  expiries.add(5, 20)
  expect(expiries.take(20)).toEqual([5])
})

it("a changed entry keeps its place", () => {
  const expiries = new Expiries<string>()
  const first = expiries.add("a", 50)
  expiries.add("b", 40)
  expiries.change(first, 30)
  expect(expiries.earliest).toBe(30)
  expect(expiries.take(40)).toEqual(["a", "b"])
})
