import { expect, it } from "vitest"
import { Resolver } from "./Resolver.ts"
import { VirtualTimers } from "./VirtualTimers.fixture.ts"

/** A resolver whose lookups the test ends. */
const start = (interval = 30_000) => {
  const timers = new VirtualTimers()
  const lookups: Array<PromiseWithResolvers<ReadonlyArray<string>>> = []
  const results: Array<ReadonlyArray<string> | string> = []
  const resolver = new Resolver({
    host: "models",
    lookup: () => {
      const lookup = Promise.withResolvers<ReadonlyArray<string>>()
      lookups.push(lookup)
      return lookup.promise
    },
    interval,
    timeout: 5_000,
    timers,
    onAddresses: (ips) => results.push(ips),
    onFailure: (reason) => results.push(reason),
  })
  /** Ends the last lookup, and lets the resolver see it. */
  const end = async (outcome: ReadonlyArray<string> | Error) => {
    const lookup = lookups.at(-1)
    if (outcome instanceof Error) lookup?.reject(outcome)
    else lookup?.resolve(outcome)
    await lookup?.promise.catch(() => {})
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  }
  resolver.hurry()
  return { timers, resolver, lookups, results, end }
}

it("looks up again after the interval, and sorts the addresses", async () => {
  const { timers, lookups, results, end } = start()
  await end(["10.0.0.2", "10.0.0.1", "10.0.0.2"])
  expect(results).toEqual([["10.0.0.1", "10.0.0.2"]])
  timers.advance(29_999)
  expect(lookups.length).toBe(1)
  timers.advance(1)
  expect(lookups.length).toBe(2)
  await end(["10.0.0.3"])
  expect(results.at(-1)).toEqual(["10.0.0.3"])
})

it("a failed lookup is repeated sooner, with growing pauses up to the interval", async () => {
  const { timers, lookups, results, end } = start(10_000)
  const pauses: Array<number> = []
  for (let round = 0; round < 5; round++) {
    await end(new Error("getaddrinfo ENOTFOUND models"))
    const before = lookups.length
    const from = timers.now()
    while (lookups.length === before) timers.advance(100)
    pauses.push(timers.now() - from)
  }
  expect(pauses).toEqual([2_000, 4_000, 8_000, 10_000, 10_000])
  expect(results).toEqual(Array(5).fill("getaddrinfo ENOTFOUND models"))
  await end([])
  expect(results.at(-1)).toBe("models has no address")
})

it("can be hurried, at most once a second", async () => {
  const { timers, resolver, lookups, end } = start()
  resolver.hurry()
  expect(lookups.length).toBe(1)
  await end(["10.0.0.1"])
  resolver.hurry()
  resolver.hurry()
  timers.advance(999)
  expect(lookups.length).toBe(1)
  timers.advance(1)
  expect(lookups.length).toBe(2)
  await end(["10.0.0.1"])
  timers.advance(5_000)
  resolver.hurry()
  expect(lookups.length).toBe(3)
})

it("a lookup without a result counts as failed, and lookups do not overlap", async () => {
  const { timers, resolver, lookups, results, end } = start()
  timers.advance(5_000)
  expect(results).toEqual(["no result within 5000 ms"])
  resolver.hurry()
  timers.advance(100_000)
  expect(lookups.length).toBe(1)
  await end(["10.0.0.1"])
  expect(results.at(-1)).toEqual(["10.0.0.1"])
})

it("uses at most 1000 addresses", async () => {
  const { results, end } = start()
  await end(Array.from({ length: 1_200 }, (_, index) => `10.0.${index >> 8}.${index & 255}`))
  expect(results[0]?.length).toBe(1_000)
})

it("a closed one looks up no more", async () => {
  const { timers, resolver, lookups, results, end } = start()
  resolver.close()
  await end(["10.0.0.1"])
  timers.advance(100_000)
  resolver.hurry()
  expect([lookups.length, results, timers.size]).toEqual([1, [], 0])
})
