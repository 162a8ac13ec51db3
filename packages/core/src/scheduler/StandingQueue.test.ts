import { expect, it } from "vitest"
import { StandingQueue, type Wait } from "./StandingQueue.ts"

const waits: { readonly [letter: string]: Wait } = { s: "short", L: "long", t: "late" }

/** One arrival each millisecond, from a time on, by the letters of their waits. Returns who was refused, as "x". */
const arrive = (queue: StandingQueue, from: number, arrivals: string): string =>
  [...arrivals]
    .map((letter, index) => (queue.admits(waits[letter] ?? "short", (from + index) * 1e6) ? letter : "x"))
    .join("")

const many = (letters: string, count: number) => letters.repeat(count)

it("long waits are refused once all of an interval were long, and any was too long", () => {
  const queue = new StandingQueue()
  expect(arrive(queue, 0, `${many("L", 99)}t${many("L", 100)}`)).toBe(many("L", 99) + many("x", 101))
})

it("long waits that all end in time are admitted for as long as they come", () => {
  const queue = new StandingQueue()
  expect(arrive(queue, 0, many("L", 1_000))).not.toContain("x")
})

it("a burst ends before", () => {
  const queue = new StandingQueue()
  expect(arrive(queue, 0, many("s", 50) + many("L", 90) + many("s", 20))).not.toContain("x")
})

it("a queue that stands admits short waits, and long ones after an interval without any", () => {
  const queue = new StandingQueue()
  arrive(queue, 0, many("tL", 50))
  expect(arrive(queue, 100, many("sL", 50))).toBe(many("sx", 50))
  // It would be long again at once if what is refused here were admitted.
  expect(arrive(queue, 200, many("s", 99) + "L")).toBe(many("s", 99) + "x")
  expect(arrive(queue, 300, many("s", 100) + "L")).toBe(many("s", 100) + "L")
})

it("an interval that is long past does not count", () => {
  const queue = new StandingQueue()
  arrive(queue, 0, many("tL", 50))
  expect(arrive(queue, 350, "L")).toBe("L")
})
