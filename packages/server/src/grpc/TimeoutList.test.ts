import { afterEach, expect, it, vi } from "vitest"
import { TimeoutEntry, TimeoutList } from "./TimeoutList.ts"

class Entry extends TimeoutEntry<Entry> {
  readonly name: string

  constructor(name: string) {
    super()
    this.name = name
  }
}

afterEach(() => void vi.useRealTimers())

const setup = (onExpire: (name: string) => void) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  const list = new TimeoutList<Entry>(10, ({ name }) => onExpire(name))
  return { add: (name: string) => list.add(new Entry(name), performance.now()) }
}

it("entries expire in the order in which they were added", () => {
  const expired: Array<string> = []
  const { add } = setup((name) => expired.push(name))
  add("a")
  vi.advanceTimersByTime(5)
  add("b")
  vi.advanceTimersByTime(5)
  expect(expired).toEqual(["a"])
  vi.advanceTimersByTime(5)
  expect(expired).toEqual(["a", "b"])
})

it("an onExpire that throws does not keep others from expiring, now or later", () => {
  const expired: Array<string> = []
  const { add } = setup((name) => {
    expired.push(name)
    if (name === "a") throw new Error(name)
  })
  add("a")
  add("b")
  expect(() => vi.advanceTimersByTime(10)).toThrow("a")
  vi.advanceTimersByTime(1)
  expect(expired).toEqual(["a", "b"])
  add("c")
  vi.advanceTimersByTime(10)
  expect(expired).toEqual(["a", "b", "c"])
})
