import { expect, it } from "vitest"
import { StandingQueue } from "./StandingQueue.ts"

/** One arrival each millisecond, from a time on: L waits for long, s does not. Returns who was refused, as "x". */
const arrive = (queue: StandingQueue, from: number, arrivals: string): string =>
  [...arrivals].map((wait, index) => (queue.admits(wait === "L", (from + index) * 1e6) ? wait : "x")).join("")

const many = (wait: string, count: number) => wait.repeat(count)

it("long waits are refused once all of an interval were long", () => {
  const queue = new StandingQueue()
  expect(arrive(queue, 0, many("L", 200))).toBe(many("L", 100) + many("x", 100))
})

it("a burst ends before", () => {
  const queue = new StandingQueue()
  expect(arrive(queue, 0, many("s", 50) + many("L", 90) + many("s", 20))).not.toContain("x")
})

it("a queue that stands admits short waits, and long ones after an interval without any", () => {
  const queue = new StandingQueue()
  arrive(queue, 0, many("L", 100))
  expect(arrive(queue, 100, many("sL", 50))).toBe(many("sx", 50))
  // It would be long again at once if what is refused here were admitted.
  expect(arrive(queue, 200, many("s", 99) + "L")).toBe(many("s", 99) + "x")
  expect(arrive(queue, 300, many("s", 100) + "L")).toBe(many("s", 100) + "L")
})

it("what was long ago says nothing", () => {
  const queue = new StandingQueue()
  arrive(queue, 0, many("L", 100))
  expect(arrive(queue, 350, "L")).toBe("L")
})
