/** The benchmark works: every row is there and no reply was wrong. Its numbers are nobody's business here. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const main = join(import.meta.dirname, "main.ts")

it("the short form fills the whole table without an error", async () => {
  // It rejects where the exit code is not 0.
  const { stdout } = await promisify(execFile)(process.execPath, [main, "--short"])
  const rows = stdout.split("\n").flatMap((line) => {
    const cells = line.split("|").map((cell) => cell.trim())
    return cells[1] === "add_sub" || cells[1] === "digits" ? [cells.slice(1, -1)] : []
  })
  const callers = ["1", "16", "64"]
  expect(rows.map(([model, protocol, concurrency]) => [model, protocol, concurrency].join(" "))).toEqual(
    ["add_sub", "digits"].flatMap((model) =>
      ["gRPC", "HTTP"].flatMap((protocol) => callers.map((concurrency) => `${model} ${protocol} ${concurrency}`)),
    ),
  )
  for (const row of rows) {
    expect(row.at(-1), row.join(" ")).toBe("0")
    expect(Number(row[3]), row.join(" ")).toBeGreaterThan(0)
    expect(Number(row[4]), row.join(" ")).toBeGreaterThan(0)
  }
  expect(stdout).toMatch(/saturated by 64 gRPC clients for 2 s: \d+ requests\/s, 0 errors/)
  expect(stdout).toMatch(/event-loop delay, p99 .*\d ms/)
  expect(stdout).toMatch(/execution_count of inference_count .*\d of \d/)
  // It measures for seconds whatever else the machine does, and starts programs besides.
}, 120_000)

it("refuses to publish the short form's numbers", async () => {
  await expect(promisify(execFile)(process.execPath, [main, "--short", "--write"])).rejects.toThrow("not with --short")
})
