/** The run of h2spec without h2spec and Go: it reports the reason, and does not fail. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { expect, it } from "vitest"

it("gives the reason for skipping without h2spec", () => {
  const main = join(import.meta.dirname, "main.ts")
  const output = execFileSync(process.execPath, [main], {
    encoding: "utf8",
    env: { ...process.env, PATH: "", TEST_H2SPEC_TOOLS: "/nowhere" },
  })
  expect(output).toBe("Skipped: h2spec is not on the PATH, and neither is Go\n")
})
