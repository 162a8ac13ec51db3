import { expect, it } from "vitest"
import { type Reader, ReadTurns } from "./ReadTurns.ts"

/** Connections, each with so many chunks to read that take a millisecond. Returns the order of reads by turns. */
const read = (chunks: Readonly<Record<string, number>>, turns: number): ReadonlyArray<string> => {
  let end: (() => void) | undefined
  const readTurns = new ReadTurns((call) => {
    expect(end, "one callback in a turn").toBeUndefined()
    end = call
  })
  const left = new Map(Object.entries(chunks))
  const isWaiting = new Set<string>()
  const readers = Object.keys(chunks).map((name): [string, Reader] => [
    name,
    { turn: -1, spent: 0, resume: () => void isWaiting.delete(name) },
  ])
  return Array.from({ length: turns }, () => {
    let order = ""
    for (const [name, reader] of readers) {
      while (!isWaiting.has(name) && (left.get(name) ?? 0) > 0) {
        order += name
        left.set(name, (left.get(name) ?? 0) - 1)
        if (readTurns.hasRead(reader, 1)) isWaiting.add(name)
      }
    }
    const call = end
    end = undefined
    call?.()
    return order
  })
}

it("a connection with much to read waits for the next turn", () => {
  expect(read({ a: 10 }, 4)).toEqual(["aaaa", "aaaa", "aa", ""])
})

it("the connections of a turn share its time, which follows their number", () => {
  // Of the first turn, the number is unknown.
  expect(read({ a: 20, b: 1, c: 20 }, 4)).toEqual(["aaaabcccc", "aacc", "aacc", "aacc"])
  expect(read({ a: 9, b: 9, c: 9, d: 9, e: 9, f: 9, g: 9, h: 9 }, 2)[1]).toBe("abcdefgh")
})

it("a connection that has little to read never waits", () => {
  expect(read({ a: 100, b: 3 }, 2)).toEqual(["aaaabbb", "aa"])
})
