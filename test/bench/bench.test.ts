/** The benchmark works: every case is there and no reply was wrong. Its numbers are nobody's business here. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { cases } from "./Suite.ts"

const run = (...flags: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [join(import.meta.dirname, "main.ts"), ...flags])

it("the short form fills the whole table without an error", async () => {
  // It rejects where the exit code is not 0.
  const { stdout } = await run("--short")
  const rows = new Map(
    stdout.split("\n").map((line) => {
      const cells = line.split("|").map((cell) => cell.trim())
      return [cells[1], cells] as const
    }),
  )
  for (const { name } of cases) {
    const row = rows.get(name)
    expect(row?.at(-2), name).toBe("0")
  }
  // It measures for seconds whatever else the machine does, and starts programs besides.
}, 240_000)

it("refuses to publish the short form's numbers", async () => {
  await expect(run("--short", "--write")).rejects.toThrow("not with --short")
})

it("names the cases to whoever asks for one that is none", async () => {
  await expect(run("--only=fast")).rejects.toThrow("--only names fast, expected one of grpc-small, grpc-js,")
})
