/** `npm run test:http2` compares thousands of connections, with other seeds each time. */
import { expect, it } from "vitest"
import * as Differential from "./Differential.ts"

const connections = 150

it.each([
  ["server", false],
  ["server", true],
  ["client", false],
  ["client", true],
] as const)("a %s makes the same of frames as node:http2, with damage: %s", async (role, isDamaged) => {
  let equal = 0
  for (let seed = 1; seed <= connections; seed++) {
    const { wrong, isEqual } = await Differential.run(role, isDamaged, seed)
    expect(wrong, `seed ${seed}`).toEqual([])
    if (isEqual) equal += 1
  }
  expect(equal).toBeGreaterThan(connections * 0.9)
})

// Found by a million connections: the streams of one share its window in another order, or the response to a stream is
// sent before or after a further header block of it.
it.each([
  [false, 1438210623],
  [true, 1438173083],
  [true, 1438173353],
  [true, 1438175615],
  [true, 1438176489],
])("a server may share a window among streams in any order: damage %s, seed %i", async (isDamaged, seed) => {
  expect((await Differential.run("server", isDamaged, seed)).wrong).toEqual([])
})
