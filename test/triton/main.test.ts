/** The run against Triton without Triton: it reports the reason, and does not fail. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { expect, it } from "vitest"

it("gives the reason for skipping without Triton", () => {
  const main = join(import.meta.dirname, "main.ts")
  const { TRITON_SERVER: _, ...environment } = process.env
  const output = execFileSync(process.execPath, [main], { encoding: "utf8", env: environment })
  expect(output).toBe("Skipped: the variable TRITON_SERVER is not the path of a tritonserver\n")
})
