/** Each attack for a second, unless another test has it. `npm run test:hard` runs them for as long as they need. */
import { existsSync } from "node:fs"
import { expect, it } from "vitest"
import { Skipped } from "./Attack.ts"
import { attacks } from "./attacks.ts"

const short = attacks.filter(({ shortTest }) => shortTest === undefined)

it.skipIf(!existsSync("/proc/self/statm")).each(short)(
  "the server withstands: $name",
  async ({ start, run }) => {
    try {
      await using target = await start()
      expect(await run(target, { seconds: 1, seed: 1 })).not.toBe("")
    } catch (error) {
      if (!(error instanceof Skipped)) throw error
      console.log(`skipped: ${error.message}`)
    }
  },
  150_000,
)

it("the tests that do the same for a shorter time exist", () => {
  for (const { shortTest } of attacks) if (shortTest !== undefined) expect(existsSync(shortTest), shortTest).toBe(true)
})
