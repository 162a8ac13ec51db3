import { expect, it } from "vitest"
import { type Reader, ReadTurns } from "./ReadTurns.ts"

/**
 * Connections, each with so many parts of chunks to read, which take a quarter of a millisecond. Returns the order of
 * reads by turns; before each turn, that many milliseconds pass.
 */
const read = (parts: Readonly<Record<string, number>>, turns: number, pause = 0): ReadonlyArray<string> => {
  let end: (() => void) | undefined
  let now = 0
  const readTurns = new ReadTurns((call) => {
    expect(end, "one callback in a turn").toBeUndefined()
    end = call
  })
  const left = new Map(Object.entries(parts))
  const isWaiting = new Set<string>()
  const readers = Object.keys(parts).map((name) => {
    const reader: Reader = { turn: -1, spent: 0, lastRead: -1, resume: () => void isWaiting.delete(name) }
    return { name, reader }
  })
  return Array.from({ length: turns }, () => {
    let order = ""
    now += pause
    for (const { name, reader } of readers) {
      while (!isWaiting.has(name) && (left.get(name) ?? 0) > 0) {
        order += name
        left.set(name, (left.get(name) ?? 0) - 1)
        now += 0.25
        if (readTurns.hasRead(reader, 0.25, now)) isWaiting.add(name)
      }
    }
    const call = end
    end = undefined
    call?.()
    return order
  })
}

it("a connection with much to read waits for the next turn", () => {
  expect(read({ a: 40 }, 4)).toEqual(["a".repeat(16), "a".repeat(16), "a".repeat(8), ""])
})

it("a connection reads less in a turn while others read", () => {
  // Of the first read, it is unknown.
  expect(read({ a: 30, b: 1, c: 20 }, 4)).toEqual([`${"a".repeat(16)}bcc`, "aacc", "aacc", "aacc"])
})

it("more than eight connections share the time of a turn", () => {
  const names = Array.from({ length: 16 }, (_, index) => String.fromCodePoint(97 + index))
  expect(read(Object.fromEntries(names.map((name) => [name, 30])), 2)[1]).toBe(names.join(""))
})

it("a connection that has little to read never waits", () => {
  expect(read({ a: 100, b: 2 }, 2)).toEqual([`${"a".repeat(16)}bb`, "aa"])
})

it("a connection reads as much as before once the others have read nothing for some time", () => {
  const [, second, , , last] = read({ a: 100, b: 1 }, 5, 60)
  expect([second, last]).toEqual(["aa", "a".repeat(16)])
})
