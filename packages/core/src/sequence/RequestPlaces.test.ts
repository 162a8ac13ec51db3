/** The list of pending requests: their order, and the sequence of each one. */
import { expect, it } from "vitest"
import { noParameters } from "../request/Request.ts"
import { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import { RequestPlaces } from "./RequestPlaces.ts"
import { SequenceMemory, StateBudget } from "./SequenceMemory.ts"
import { SequenceRun } from "./SequenceRun.ts"

const budget = new StateBudget({ maxStateBytes: 1, maxTotalStateBytes: 1 })
const run = (id: bigint) => new SequenceRun(id, 0, new SequenceMemory(budget))
const statistics = { succeeded: () => {}, failed: () => {} }

const request = (id: string) =>
  new QueuedRequest({ id, inputs: [], rows: 1, parameters: noParameters, deadline: undefined }, () => {}, statistics, 0)

const ids = (places: RequestPlaces) => [...places.keys()].map(({ request }) => request.id)

it("requests are in the order in which they were added, without those that have left", () => {
  const places = new RequestPlaces()
  const [a, b, c, d] = [request("a"), request("b"), request("c"), request("d")]
  for (const one of [a, b, c]) places.set(one, run(1n))
  expect(ids(places)).toEqual(["a", "b", "c"])
  places.delete(b)
  expect(ids(places)).toEqual(["a", "c"])
  places.delete(a)
  places.set(d, run(1n))
  expect(ids(places)).toEqual(["c", "d"])
  for (const one of [d, c]) places.delete(one)
  expect(ids(places)).toEqual([])
  places.set(b, run(1n))
  expect(ids(places)).toEqual(["b"])
})

it("a request knows its sequence until it leaves", () => {
  const places = new RequestPlaces()
  const [one, other] = [run(1n), run(2n)]
  const [a, b] = [request("a"), request("b")]
  places.set(a, one)
  places.set(b, other)
  expect([places.get(a), places.get(b), places.get(request("c"))]).toEqual([one, other, undefined])
  expect([...places.values()]).toEqual([one, other])
  places.delete(a)
  places.delete(a)
  expect(places.get(a)).toBeUndefined()
  expect([...places.values()]).toEqual([other])
})

it("a request that is queued again keeps its place", () => {
  const places = new RequestPlaces()
  const [a, b] = [request("a"), request("b")]
  for (const one of [a, b, a]) places.set(one, run(1n))
  expect(ids(places)).toEqual(["a", "b"])
  places.delete(a)
  expect(ids(places)).toEqual(["b"])
})
