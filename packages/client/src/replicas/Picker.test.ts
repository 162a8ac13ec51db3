import { expect, it } from "vitest"
import { Ejection } from "./Ejection.ts"
import { Picker } from "./Picker.ts"
import { Replica } from "./Replica.ts"
import { VirtualTimers } from "./VirtualTimers.fixture.ts"
import { silentChannel } from "./ScriptedChannel.fixture.ts"

const ejection = { failures: 5, time: 1_000, maxTime: 60_000, returnTime: 10_000 }

const replicasOf = (count: number) =>
  Array.from(
    { length: count },
    (_, index) => new Replica(`r${index}`, silentChannel, new Ejection(ejection, () => 0.5)),
  )

/** Calls with a time for each replica at a rate, for a time. Returns how many each has received. */
const simulate = (
  replicas: ReadonlyArray<Replica>,
  picker: Picker,
  timers: VirtualTimers,
  { millis, times }: { readonly millis: number; readonly times: (index: number) => number },
) => {
  const counts = replicas.map(() => 0)
  const end = timers.now() + millis
  while (timers.now() < end) {
    const replica = picker.pick(replicas, [], timers.now())
    if (replica === undefined) throw new Error("no replica")
    const index = replicas.indexOf(replica)
    counts[index] = (counts[index] ?? 0) + 1
    replica.outstanding += 1
    const time = times(index) * (0.5 + timers.random())
    timers.after(time, () => {
      replica.outstanding -= 1
      replica.latency.record(time, timers.now())
    })
    timers.advance(2)
  }
  return counts
}

it("the load of healthy replicas is even within 10 %", () => {
  const timers = new VirtualTimers()
  const replicas = replicasOf(3)
  const counts = simulate(replicas, new Picker(0, timers.random), timers, { millis: 12_000, times: () => 10 })
  expect(counts.reduce((sum, count) => sum + count)).toBe(6_000)
  for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(200)
})

it("the load is even without concurrency, whatever the small differences in speed", () => {
  const timers = new VirtualTimers()
  const replicas = replicasOf(3)
  const times = (index: number) => 0.5 + index * 0.1
  const counts = simulate(replicas, new Picker(0, timers.random), timers, { millis: 12_000, times })
  for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(200)
})

it("a replica that is ten times slower receives less than 1 % of the calls", () => {
  const timers = new VirtualTimers()
  const replicas = replicasOf(3)
  const picker = new Picker(0, timers.random)
  const times = (index: number) => (index === 2 ? 50 : 5)
  simulate(replicas, picker, timers, { millis: 2_000, times })
  const [one = 0, two = 0, slow = 0] = simulate(replicas, picker, timers, { millis: 60_000, times })
  expect(slow / (one + two + slow)).toBeLessThan(0.01)
  // It is tried again now and then.
  expect(slow).toBeGreaterThan(0)
  const again = simulate(replicas, picker, timers, { millis: 60_000, times: () => 5 })
  expect(again[2]).toBeGreaterThan(5_000)
})

it("prefers fewer attempts under way", () => {
  const timers = new VirtualTimers()
  const [one, two] = replicasOf(2)
  if (one === undefined || two === undefined) throw new Error("two replicas")
  one.outstanding = 1
  const picker = new Picker(0, timers.random)
  for (let call = 0; call < 100; call++) expect(picker.pick([one, two], [], 0)).toBe(two)
})

it("an ejected replica receives nothing, and a growing share afterwards", () => {
  const timers = new VirtualTimers()
  const replicas = replicasOf(3)
  replicas[0]?.ejection.failed("unreachable", 0)
  const picker = new Picker(0, timers.random)
  const share = (now: number) => {
    let picked = 0
    for (let call = 0; call < 10_000; call++) if (picker.pick(replicas, [], now) === replicas[0]) picked += 1
    return picked / 10_000
  }
  expect(share(999)).toBe(0)
  expect(share(1_000)).toBeLessThan(0.05)
  expect(share(6_000)).toBeGreaterThan(0.1)
  expect(share(6_000)).toBeLessThan(0.25)
  expect(share(11_000)).toBeCloseTo(1 / 3, 1)
})

it("if all are ejected, all receive calls", () => {
  const timers = new VirtualTimers()
  const replicas = replicasOf(3)
  for (const replica of replicas) replica.ejection.failed("unreachable", 0)
  const picker = new Picker(0, timers.random)
  const picked = new Set(Array.from({ length: 100 }, () => picker.pick(replicas, [], 1)))
  expect(picked.size).toBe(3)
  expect(picker.untried(replicas, [], 1)).toBe(undefined)
})

it("below the panic threshold, ejections are ignored", () => {
  const timers = new VirtualTimers()
  const replicas = replicasOf(4)
  const picker = new Picker(0.5, timers.random)
  const picked = () => new Set(Array.from({ length: 200 }, () => picker.pick(replicas, [], 1))).size
  for (const [ejected, expected] of [3, 2, 4].entries()) {
    replicas[ejected]?.ejection.failed("unreachable", 0)
    expect(picked()).toBe(expected)
  }
})

it("avoids replicas that were tried, that ask for a pause and that are unhealthy", () => {
  const timers = new VirtualTimers()
  const replicas = replicasOf(4)
  const [one, two, three, four] = replicas
  if (one === undefined || two === undefined || three === undefined) throw new Error("three replicas")
  two.pausedUntil = 100
  three.isHealthy = false
  const picker = new Picker(0, timers.random)
  for (let call = 0; call < 100; call++) expect(picker.pick(replicas, [one], 99)).toBe(four)
  expect(picker.untried(replicas, four === undefined ? [one] : [one, four], 99)).toBe(undefined)
  expect(picker.untried(replicas, four === undefined ? [one] : [one, four], 100)).toBe(two)
})

it("has an answer for none and for one", () => {
  const picker = new Picker(0, Math.random)
  expect(picker.pick([], [], 0)).toBe(undefined)
  const [one] = replicasOf(1)
  one?.ejection.failed("unreachable", 0)
  expect(picker.pick(one === undefined ? [] : [one], [], 0)).toBe(one)
})
