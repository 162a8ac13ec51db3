import { expect, it } from "vitest"
import { RetryBudget } from "./RetryBudget.ts"

it("permits retries while more than half of its tokens are left", () => {
  const budget = new RetryBudget({ tokens: 10, ratio: 0.5 })
  expect([1, 2, 3, 4, 5, 6].map(() => budget.failed())).toEqual([true, true, true, true, false, false])
  expect(budget.tokens).toBe(4)
})

it("a success returns a part of a token, up to the maximum", () => {
  const budget = new RetryBudget({ tokens: 4, ratio: 0.5 })
  expect([budget.failed(), budget.failed()]).toEqual([true, false])
  budget.succeeded()
  expect([budget.tokens, budget.hedge()]).toEqual([2.5, true])
  for (let index = 0; index < 100; index++) budget.succeeded()
  expect(budget.tokens).toBe(4)
})

it("a hedge takes a token only where it is permitted", () => {
  const budget = new RetryBudget({ tokens: 4, ratio: 0.1 })
  expect([budget.hedge(), budget.hedge(), budget.hedge()]).toEqual([true, true, false])
  expect(budget.tokens).toBe(2)
})

it("never falls below zero", () => {
  const budget = new RetryBudget({ tokens: 2, ratio: 1 })
  for (let index = 0; index < 10; index++) budget.failed()
  expect(budget.tokens).toBe(0)
  budget.succeeded()
  budget.succeeded()
  expect(budget.hedge()).toBe(true)
})

it("sustained failures are repeated in the ratio of the successes", () => {
  const budget = new RetryBudget({ tokens: 100, ratio: 0.1 })
  let retried = 0
  for (let call = 0; call < 10_000; call++) {
    if (call % 2 === 0) budget.succeeded()
    else if (budget.failed()) retried += 1
  }
  // 50 from the reserve; then the successes return less than the failures take.
  expect(retried).toBeLessThan(60)
})
