/** The Python clients' tests without Python: they report the reason, and do not fail. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { expect, it } from "vitest"

it("gives the reason for skipping without Python", () => {
  const main = join(import.meta.dirname, "main.ts")
  const output = execFileSync(process.execPath, [main], { encoding: "utf8", env: { ...process.env, PATH: "" } })
  expect(output).toBe("Skipped, no Python client has been tested: there is no python3\n")
})
