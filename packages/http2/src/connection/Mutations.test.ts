/** `npm run test:http2` runs 50,000 of them, or a million. */
import { expect, it } from "vitest"
import { run } from "./Mutations.fixture.ts"

const connections = 2_000

it(`no damage of ${connections} connections makes one throw, send a wrong frame or grow`, () => {
  let failed = 0
  for (let seed = 1; seed <= connections; seed++) {
    try {
      if (run(seed)) failed += 1
    } catch (error) {
      throw new Error(`the connection of seed ${seed}`, { cause: error })
    }
  }
  // Most damage is noticed, and some is none.
  expect(failed).toBeGreaterThan(connections / 4)
  expect(failed).toBeLessThan(connections)
})
