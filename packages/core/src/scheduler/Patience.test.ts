import { expect, it } from "vitest"
import { Patience } from "./Patience.ts"

const ms = 1e6

/** Of every ten requests, so many are left after this time, and the others are answered after that one; 1 ms apart. */
const learn = (patience: Patience, from: number, count: number, leaving: number, left: number, answered: number) => {
  for (let index = 0; index < count; index++) {
    const now = (from + index) * ms
    if (index % 10 < leaving) patience.left(left * ms, now)
    else patience.answered(answered * ms, now)
  }
  return (from + count) * ms
}

it("is infinite before any caller has left, and while few of them leave", () => {
  const patience = new Patience()
  expect(patience.at(0)).toBe(Infinity)
  learn(patience, 0, 500, 0, 0, 20)
  expect(patience.at(500 * ms)).toBe(Infinity)
  for (let index = 0; index < 500; index++) {
    const now = (500 + index) * ms
    if (index % 50 === 0) patience.left(25 * ms, now)
    else patience.answered(20 * ms, now)
  }
  expect(patience.at(1000 * ms)).toBe(Infinity)
})

it("is a little less than the time after which callers leave", () => {
  const patience = new Patience()
  const now = learn(patience, 0, 400, 5, 100, 60)
  expect(patience.at(now) / ms).toBeGreaterThan(88)
  expect(patience.at(now) / ms).toBeLessThan(100)
})

it("follows callers that have less patience", () => {
  const patience = new Patience()
  learn(patience, 0, 400, 5, 100, 60)
  const now = learn(patience, 400, 400, 5, 30, 20)
  expect(patience.at(now) / ms).toBeGreaterThan(26)
  expect(patience.at(now) / ms).toBeLessThan(30)
})

it("rises with answers to callers that have waited longer: a client that has disconnected says little", () => {
  const patience = new Patience()
  for (let index = 0; index < 100; index++) patience.left(21 * ms, 0)
  expect(patience.at(0) / ms).toBeLessThan(21)
  for (let index = 0; index < 20; index++) patience.answered(50 * ms, index * ms)
  expect(patience.at(20 * ms) / ms).toBeGreaterThan(49)
})

it("is forgotten after ten seconds without a caller that leaves", () => {
  const patience = new Patience()
  const now = learn(patience, 0, 400, 5, 100, 60)
  expect(patience.at(now + 9_900 * ms)).toBeLessThan(Infinity)
  expect(patience.at(now + 10_100 * ms)).toBe(Infinity)
  patience.answered(60 * ms, now + 10_200 * ms)
  expect(patience.at(now + 10_200 * ms)).toBe(Infinity)
})

it("is kept for as long as it takes callers with much patience to leave again", () => {
  const patience = new Patience()
  const now = learn(patience, 0, 400, 5, 2000, 900)
  expect(patience.at(now + 60_000 * ms)).toBeLessThan(Infinity)
})

it("learns nothing from callers that leave at once, however many: they have not waited", () => {
  const patience = new Patience()
  for (let index = 0; index < 10_000; index++) patience.left(19 * ms, index)
  expect(patience.at(10_000)).toBe(Infinity)
})

it("does not apply to a connection whose callers stay, and does to those that are unknown or have left", () => {
  const patience = new Patience()
  const [staying, leaving] = [{}, {}]
  for (let index = 0; index < 400; index++) {
    patience.answered(60 * ms, index * ms, staying)
    patience.left(100 * ms, index * ms, leaving)
  }
  const now = 400 * ms
  expect(patience.at(now, staying)).toBe(Infinity)
  for (const connection of [leaving, {}, undefined]) expect(patience.at(now, connection) / ms).toBeLessThan(100)
  // A single caller that leaves does not speak for the others.
  patience.left(100 * ms, now, staying)
  expect(patience.at(now, staying)).toBe(Infinity)
  for (let index = 0; index < 10; index++) patience.left(100 * ms, now, staying)
  expect(patience.at(now, staying) / ms).toBeLessThan(100)
})
