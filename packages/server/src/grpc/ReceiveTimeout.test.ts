/** Time is vitest's here: nothing waits. */
import { afterEach, beforeEach, expect, it, vi } from "@effect/vitest"
import { ReceiveTimeout, ReceivingCall } from "./ReceiveTimeout.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

class Named extends ReceivingCall {
  readonly #name: string
  readonly #log: Array<string>

  constructor(name: string, log: Array<string>) {
    super()
    this.#name = name
    this.#log = log
  }

  expire(): void {
    this.#log.push(this.#name)
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
  expect(vi.getTimerCount()).toBe(0)
  vi.advanceTimersByTime(1e9)
  expect(log).toEqual([])
})
