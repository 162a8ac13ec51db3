import * as fc from "fast-check"
import { expect, it } from "vitest"
import { Admission } from "./Admission.ts"

/** No slot is free. */
const load = { rows: 1, rowsAhead: 0, slots: 1, free: 0, longestWait: Infinity }

/** An admission that knows batches of 10 + rows. */
const learned = (maxBatchSize = 8): Admission => {
  const admission = new Admission(maxBatchSize, false)
  for (const rows of [1, 8, 2, 4, 8, 1, 8, 4])
    admission.ended(admission.started(rows, 0), rows, 0, 10 + rows, "complete")
  return admission
}

it("predicts nothing before four batches have ended, without instances, and for a request that need not wait", () => {
  expect(new Admission(8, false).predict({ ...load, now: 0, rowsAhead: 100, slots: 1 })).toBeUndefined()
  expect(learned().predict({ ...load, now: 0, rowsAhead: 100, slots: 0 })).toBeUndefined()
  expect(learned().predict({ ...load, now: 0, rowsAhead: 7, free: 1 })).toBeUndefined()
  expect(learned().predict({ ...load, now: 0, rowsAhead: 15, slots: 2, free: 2 })).toBeUndefined()
})

it("adds the rest of the running batch, the batches ahead, and the own one", () => {
  const admission = learned()
  admission.started(8, 100)
  expect(admission.predict({ ...load, now: 100, rowsAhead: 0, slots: 1 })).toBeCloseTo(18 + 11)
  expect(admission.predict({ ...load, now: 110, rowsAhead: 0, slots: 1 })).toBeCloseTo(8 + 11)
  expect(admission.predict({ ...load, now: 110, rowsAhead: 24, slots: 1 })).toBeCloseTo(8 + 3 * 18 + 18)
  // A batch that takes longer than expected may end at any moment.
  expect(admission.predict({ ...load, now: 500, rowsAhead: 0, slots: 1 })).toBeCloseTo(11)
})

it("a request waits no longer than its queue timeout", () => {
  const admission = learned()
  admission.started(8, 100)
  expect(admission.predict({ ...load, now: 110, rowsAhead: 24, longestWait: 20 })).toBeCloseTo(20 + 18)
  expect(admission.predict({ ...load, now: 110, rowsAhead: 0, longestWait: 20 })).toBeCloseTo(8 + 11)
})

it("instances share the work", () => {
  const admission = learned()
  admission.started(8, 0)
  admission.started(8, 0)
  expect(admission.predict({ ...load, now: 0, rowsAhead: 16, slots: 2 })).toBeCloseTo((2 * 18 + 2 * 18) / 2 + 18)
})

it("a longer queue never ends earlier, and less time never helps", () => {
  fc.assert(
    fc.property(fc.nat(2000), fc.nat(2000), fc.integer({ min: 1, max: 8 }), fc.nat(5000), (one, other, slots, left) => {
      const admission = learned()
      for (let batch = 0; batch < slots; batch++) admission.started(8, 0)
      const predict = (rowsAhead: number) => admission.predict({ ...load, now: 3, rowsAhead, slots }) ?? 0
      const [fewer, more] = [Math.min(one, other), Math.max(one, other)]
      expect(predict(fewer)).toBeLessThanOrEqual(predict(more))
      if (admission.isInTime(predict(more), left, 0)) expect(admission.isInTime(predict(fewer), left, 0)).toBe(true)
      if (admission.isInTime(predict(one), left, 0)) expect(admission.isInTime(predict(one), left + 1, 0)).toBe(true)
    }),
  )
})

it("smaller batches than the largest, if those leave requests behind, make the queue longer", () => {
  const admission = learned()
  admission.started(8, 0)
  const before = admission.predict({ ...load, now: 0, rowsAhead: 64, slots: 1 }) ?? 0
  for (let batch = 0; batch < 100; batch++) admission.taken(2, true)
  expect(admission.predict({ ...load, now: 0, rowsAhead: 64, slots: 1 })).toBeGreaterThan(2 * before)
})

it("requests that end later than predicted raise the margin, up to a part of the time that is left", () => {
  const admission = learned()
  expect(admission.isInTime(99, 100, 0)).toBe(true)
  for (let request = 0; request < 1000; request++) admission.answered(50)
  expect(admission.isInTime(71, 100, 0)).toBe(false)
  expect(admission.isInTime(69, 100, 0)).toBe(true)
  for (let request = 0; request < 1e5; request++) admission.answered(-1)
  expect(admission.isInTime(99, 100, 0)).toBe(true)
})

it("callers that leave early teach nothing, and those that leave late do", () => {
  const admission = learned()
  for (let request = 0; request < 1000; request++) admission.abandoned(-10)
  expect(admission.isInTime(99, 100, 0)).toBe(true)
  for (let request = 0; request < 1000; request++) admission.abandoned(10)
  expect(admission.isInTime(99, 100, 0)).toBe(false)
})

it("an interrupted batch teaches only that it would have taken longer, and a failed one nothing", () => {
  const admission = learned()
  const before = admission.shortest(8)
  admission.ended(admission.started(8, 0), 8, 0, 1, "interrupted")
  admission.ended(admission.started(8, 0), 8, 0, 1000, "failed")
  expect(admission.shortest(8)).toBe(before)
  for (let batch = 0; batch < 100; batch++) admission.ended(admission.started(8, 0), 8, 0, 1000, "interrupted")
  expect(admission.shortest(8)).toBeGreaterThan(500)
})

it("expects smaller batches, once the queue takes them", () => {
  const [declared, learning] = [false, true].map((learnsRows) => {
    const admission = new Admission(8, learnsRows)
    for (let batch = 0; batch < 400; batch++) {
      admission.isInTime(1, 1e6, batch)
      const rows = admission.nextRows(100)
      admission.taken(rows, true)
      admission.ended(admission.started(rows, 0), rows, 0, rows ** 2, "complete")
    }
    return admission.maxRows
  })
  expect(declared).toBe(8)
  expect(learning).toBe(1)
})
