import { expect, it } from "vitest"
import { LatenessMargin } from "./LatenessMargin.ts"
import * as Random from "../synthetic/Random.ts"

it("few requests are later than the margin, whatever the distribution", () => {
  const random = Random.make(5)
  for (const lateness of [() => random.next() * 10, () => -Math.log(1 - random.next()), () => random.next() - 5]) {
    const margin = new LatenessMargin()
    let beyond = 0
    const count = 50_000
    for (let request = 0; request < count; request++) {
      const late = lateness()
      if (request >= count / 2 && late > margin.value) beyond += 1
      margin.ended(late, 1)
    }
    expect(beyond / (count / 2)).toBeLessThan(0.02)
  }
})

it("grows at once, and shrinks again once requests are in time", () => {
  const margin = new LatenessMargin()
  for (let request = 0; request < 20; request++) margin.ended(10, 1)
  const grown = margin.value
  expect(grown).toBeGreaterThan(2)
  for (let request = 0; request < 50_000; request++) margin.ended(-1, 1)
  expect(margin.value).toBe(0)
})
