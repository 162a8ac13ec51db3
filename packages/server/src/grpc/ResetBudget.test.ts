import { expect, test } from "vitest"
import { ResetBudget } from "./ResetBudget.ts"

/** Runs seconds of a connection in steps of 10 ms; returns the time in ms at which it is refused, if it is. */
const run = (seconds: number, { cancels, completed }: { readonly cancels: number; readonly completed: number }) => {
  let now = 0
  const budget = new ResetBudget(() => now)
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
  const budget = new ResetBudget(() => 0)
  for (let call = 0; call < 10_000; call++) expect(budget.cancelled()).toBe(true)
  expect(budget.cancelled()).toBe(false)
})

test("10,000 cancelled calls a second, and nothing else, are refused after about a second", () => {
  expect(run(60, { cancels: 10_000, completed: 0 })).toBeGreaterThan(900)
  expect(run(60, { cancels: 10_000, completed: 0 })).toBeLessThan(1_200)
})

test("completed calls do not add up to more than the burst", () => {
  const budget = new ResetBudget(() => 0)
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
  const budget = new ResetBudget(() => 0)
  for (let call = 0; call < allowed; call++) expect(budget.cancelled(inFlight)).toBe(true)
  expect(budget.cancelled(inFlight)).toBe(false)
})

test("cancelled calls that a busy server reads late, all at once, are allowed beside the calls among them", () => {
  const budget = new ResetBudget(() => 0)
  for (let call = 0; call < 9 * 5_000; call++) expect(budget.cancelled(Math.ceil(call / 50))).toBe(true)
})
