/** Time is vitest's here: nothing waits. */
import { afterEach, beforeEach, expect, it, vi } from "@effect/vitest"
import { ReceiveTimeout, ReceivingCall } from "./ReceiveTimeout.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

class Named extends ReceivingCall {
  readonly #name: string
  readonly #log: Array<string>
  received = 0

  constructor(name: string, log: Array<string>) {
    super()
    this.#name = name
    this.#log = log
  }

  expire(reason: "late" | "slow"): void {
    this.#log.push(reason === "late" ? this.#name : `${this.#name} is slow`)
  }
}

it("each call expires after its own time, the first to begin first, with one timer", () => {
  const log: Array<string> = []
  const timeout = new ReceiveTimeout(100)
  timeout.add(new Named("a", log))
  vi.advanceTimersByTime(40)
  timeout.add(new Named("b", log))
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(59)
  expect(log).toEqual([])
  vi.advanceTimersByTime(2)
  expect(log).toEqual(["a"])
  vi.advanceTimersByTime(40)
  expect(log).toEqual(["a", "b"])
})

it("a call that is in time does not expire, wherever it stood, and may begin again", () => {
  for (const over of [0, 1, 2]) {
    const log: Array<string> = []
    const timeout = new ReceiveTimeout(100)
    const all = ["a", "b", "c"].map((name) => new Named(name, log))
    for (const one of all) timeout.add(one)
    timeout.remove(all[over]!)
    timeout.remove(all[over]!)
    vi.advanceTimersByTime(101)
    expect(log).toEqual(["a", "b", "c"].toSpliced(over, 1))
    timeout.add(all[over]!)
    vi.advanceTimersByTime(101)
    expect(log.at(-1)).toBe("abc"[over])
  }
})

it("a call may add and remove others while it expires", () => {
  const log: Array<string> = []
  const timeout = new ReceiveTimeout(100)
  const second = new Named("second", log)
  class First extends ReceivingCall {
    received = 0

    expire(): void {
      log.push("first")
      timeout.remove(second)
      timeout.add(new Named("third", log))
    }
  }
  timeout.add(new First())
  timeout.add(second)
  vi.advanceTimersByTime(101)
  expect(log).toEqual(["first"])
  vi.advanceTimersByTime(101)
  expect(log).toEqual(["first", "third"])
})

it("with no limit nothing expires", () => {
  const log: Array<string> = []
  const timeout = new ReceiveTimeout(Infinity)
  timeout.add(new Named("a", log))
  vi.advanceTimersByTime(1e6)
  expect(log).toEqual([])
  expect(vi.getTimerCount()).toBe(1)
})

it("a call that is checked again and again keeps to one timer", () => {
  const timeout = new ReceiveTimeout(300_000)
  timeout.add(new Named("a", []))
  for (let period = 0; period < 5; period++) {
    vi.advanceTimersByTime(10_001)
    expect(vi.getTimerCount()).toBe(1)
  }
})

it("a call expires early once its message arrives at less than 240 bytes per second", () => {
  const log: Array<string> = []
  const timeout = new ReceiveTimeout(300_000)
  const [waiting, steady, slow] = ["waiting", "steady", "slow"].map((name) => new Named(name, log))
  for (const call of [waiting!, steady!, slow!]) timeout.add(call)
  for (let seconds = 10; seconds <= 290; seconds += 10) {
    steady!.received += 2_400
    if (seconds <= 30) slow!.received += seconds === 30 ? 2_399 : 2_400
    vi.advanceTimersByTime(10_001)
  }
  expect(log).toEqual(["slow is slow"])
  vi.advanceTimersByTime(20_000)
  expect(log).toEqual(["slow is slow", "waiting", "steady"])
})
