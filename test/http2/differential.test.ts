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
