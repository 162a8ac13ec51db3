import { expect, test } from "vitest"
import { EndedSequences } from "./EndedSequences.ts"

const ended = { reason: "ended", idleMillis: undefined } as const

test("the oldest ended sequences are forgotten", () => {
  const sequences = new EndedSequences(3)
  for (const id of [1n, 2n, "1", 4n]) sequences.add(id, ended)
  expect([1n, 2n, "1", 4n].map((id) => sequences.get(id)?.reason)).toEqual([undefined, "ended", "ended", "ended"])
})

test("an id that ends again is remembered from then on", () => {
  const sequences = new EndedSequences(3)
  sequences.add(1n, ended)
  sequences.add(2n, ended)
  sequences.add(1n, { reason: "expired", idleMillis: 5 })
  sequences.add(3n, ended)
  expect(sequences.get(1n)).toMatchObject({ reason: "expired", idleMillis: 5 })
  sequences.add(4n, ended)
  sequences.add(5n, ended)
  expect(sequences.get(1n)).toBeUndefined()
})
