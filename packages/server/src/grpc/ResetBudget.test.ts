import { expect, test } from "vitest"
import { ResetBudget } from "./ResetBudget.ts"

const never = () => 0

/** Runs seconds of a connection in steps of 10 ms; returns the time in ms at which it is refused, if it is. */
const run = (seconds: number, { cancels, completed }: { readonly cancels: number; readonly completed: number }) => {
  let now = 0
  const budget = new ResetBudget(never, 0, () => now)
  for (; now < seconds * 1000; now += 10) {
    for (let call = 0; call < completed / 100; call++) budget.completed()
    for (let call = 0; call < cancels / 100; call++) if (!budget.cancelled()) return now
  }
  return undefined
}

test("5,000 cancelled calls a second beside 100 completed ones are allowed for ever", () => {
  expect(run(3_600, { cancels: 5_000, completed: 100 })).toBeUndefined()
})

test("500 cancelled calls a second are allowed without any completed call", () => {
  expect(run(3_600, { cancels: 500, completed: 0 })).toBeUndefined()
})

test("a burst of 10,000 cancelled calls is allowed, one more is not", () => {
  const budget = new ResetBudget(never, 0, () => 0)
  for (let call = 0; call < 10_000; call++) expect(budget.cancelled()).toBe(true)
  expect(budget.cancelled()).toBe(false)
})

test("10,000 cancelled calls a second, and nothing else, are refused after about a second", () => {
  expect(run(60, { cancels: 10_000, completed: 0 })).toBeGreaterThan(900)
  expect(run(60, { cancels: 10_000, completed: 0 })).toBeLessThan(1_200)
})

test("completed calls do not add up to more than the burst", () => {
  const budget = new ResetBudget(never, 0, () => 0)
  for (let call = 0; call < 1_000_000; call++) budget.completed()
  for (let call = 0; call < 10_000; call++) budget.cancelled()
  expect(budget.cancelled()).toBe(false)
})

test.each([
  [2, 10_200],
  [100, 20_000],
  [1_000, 110_000],
  [8_000, 110_000],
])("beside %d calls in flight, %d cancelled ones at once are allowed", (inFlight, allowed) => {
  const budget = new ResetBudget(never, 0, () => 0)
  for (let call = 0; call < allowed; call++) expect(budget.cancelled(inFlight)).toBe(true)
  expect(budget.cancelled(inFlight)).toBe(false)
})

test("cancelled calls that a busy server reads late, all at once, are allowed beside the calls among them", () => {
  const budget = new ResetBudget(never, 0, () => 0)
  for (let call = 0; call < 9 * 5_000; call++) expect(budget.cancelled(Math.ceil(call / 50))).toBe(true)
})

/** Cancels calls until one too many; returns how many were allowed. */
const allowed = (budget: ResetBudget): number => {
  for (let call = 0; ; call++) if (!budget.cancelled()) return call
}

test.each([
  ["30 s without reading", 30, 30, 25_000],
  ["10 of 30 s without reading", 30, 10, 15_000],
  ["30 s of an idle connection", 30, 0, 10_000],
  ["an hour without reading", 3_600, 3_600, 110_000],
])("after %s, all at once", (_, seconds, still, count) => {
  let [now, stood] = [0, 0]
  const budget = new ResetBudget(
    () => stood,
    0,
    () => now,
  )
  now = seconds * 1000
  stood = still * 1000
  expect(allowed(budget)).toBe(count)
  // The time counts once.
  expect(budget.cancelled()).toBe(false)
})

test("500 cancelled calls a second are allowed for ever by a server that reads them twice a minute, all at once", () => {
  let [now, stood, refused] = [0, 0, 0]
  const budget = new ResetBudget(
    () => stood,
    0,
    () => now,
  )
  for (let round = 0; round < 100; round++) {
    now += 30_000
    stood += 29_000
    for (let call = 0; call < 15_000; call++) if (!budget.cancelled()) refused += 1
  }
  expect(refused).toBe(0)
})

test("standstills add nothing to the calls that a flood may cancel in the long run", () => {
  let [now, stood] = [0, 0]
  const budget = new ResetBudget(
    () => stood,
    0,
    () => now,
  )
  let count = 0
  for (; budget.cancelled(); count++) {
    now += 1
    stood += 1
  }
  const without = new ResetBudget(never, 0, () => now)
  now = 0
  let others = 0
  for (; without.cancelled(); others++) now += 1
  expect(count).toBe(others)
})
