/** Time is vitest's here: nothing waits. */
import { afterEach, beforeEach, expect, it, vi } from "@effect/vitest"
import { Expiring, Expiry } from "./ReceiveTimeout.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

class Named extends Expiring {
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

it("each expires after its own time, the first to begin first, with one timer", () => {
  const log: Array<string> = []
  const expiry = new Expiry(100)
  expiry.add(new Named("a", log))
  vi.advanceTimersByTime(40)
  expiry.add(new Named("b", log))
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(59)
  expect(log).toEqual([])
  vi.advanceTimersByTime(2)
  expect(log).toEqual(["a"])
  vi.advanceTimersByTime(40)
  expect(log).toEqual(["a", "b"])
})

it("what is over in time does not expire, wherever it stood, and may begin again", () => {
  for (const over of [0, 1, 2]) {
    const log: Array<string> = []
    const expiry = new Expiry(100)
    const all = ["a", "b", "c"].map((name) => new Named(name, log))
    for (const one of all) expiry.add(one)
    expiry.remove(all[over]!)
    expiry.remove(all[over]!)
    vi.advanceTimersByTime(101)
    expect(log).toEqual(["a", "b", "c"].toSpliced(over, 1))
    expiry.add(all[over]!)
    vi.advanceTimersByTime(101)
    expect(log.at(-1)).toBe("abc"[over])
  }
})

it("one that begins or ends others when it expires disturbs nothing", () => {
  const log: Array<string> = []
  const expiry = new Expiry(100)
  const second = new Named("second", log)
  class First extends Expiring {
    expire(): void {
      log.push("first")
      expiry.remove(second)
      expiry.add(new Named("third", log))
    }
  }
  expiry.add(new First())
  expiry.add(second)
  vi.advanceTimersByTime(101)
  expect(log).toEqual(["first"])
  vi.advanceTimersByTime(101)
  expect(log).toEqual(["first", "third"])
})

it("with no limit nothing expires", () => {
  const log: Array<string> = []
  const expiry = new Expiry(Infinity)
  expiry.add(new Named("a", log))
  expect(vi.getTimerCount()).toBe(0)
  vi.advanceTimersByTime(1e9)
  expect(log).toEqual([])
})
