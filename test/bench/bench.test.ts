/** Checks that the benchmark runs every case without wrong replies. Does not check its figures. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import * as Page from "./Page.ts"
import * as Published from "./Published.ts"
import type { Row } from "./Results.ts"
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
  // The benchmark measures for several seconds at any load of the machine, and starts programs.
}, 240_000)

it("refuses to publish the short form's numbers", async () => {
  await expect(run("--short", "--write")).rejects.toThrow("not with --short")
})

it("lists the cases for an unknown case", async () => {
  await expect(run("--only=fast")).rejects.toThrow("--only names fast, expected one of grpc-small, grpc-js,")
})

/** A row of a case, as a run has it. */
const row = (name: string, reached: string, lines: ReadonlyArray<string>): Row => {
  const of = cases.find((one) => one.name === name)
  if (of === undefined) throw new Error(`no case ${name}`)
  const result = {
    reached,
    lines,
    met: undefined,
    cpu: "1 / 2",
    latency: "1, 2, 3 / 2, 3, 4",
    busy: "",
    other: "",
    errors: [],
    notes: [],
  }
  return { of, result, taken: 0.123 }
}

const empty = "before\n<!-- cases: written by `npm run bench -- --write` -->\n<!-- end of cases -->\nbetween\n".concat(
  "<!-- results: written by `npm run bench -- --write` -->\nold\n<!-- end of results -->\nafter\n",
)

it("the page has the results of several runs on one machine, and keeps what stands around them", () => {
  const first = Published.merged({ machine: "", cases: {} }, "a machine", "today", [
    row("grpc-small", "0.70", ["7 / 10 /s"]),
  ])
  const second = Published.merged(first, "a machine", "tomorrow", [
    row("memory", "", ["one", "other"]),
    row("http-json", "0.80", ["8 / 10 /s"]),
  ])
  const page = Page.render(empty, cases, second)
  expect(page).toMatch(/^before\n.*\nbetween\n.*\nafter\n$/s)
  expect(page).toMatch(/\| `grpc-small` +\| ≥ 0\.75 +\| \*\*0\.70\*\* .*7 \/ 10 \/s/)
  expect(page).toMatch(/\| `http-json` .*\*\*0\.80\*\*/)
  expect(page).toContain("memory per idle connection and per queued small request:\n\n- one\n- other\n")
  expect(page).toMatch(/\| `grpc-small` .*\| 0\.12 +\| 0 +\| today +\|/)
  expect(page).toMatch(/\| `http-json` .*\| tomorrow \|/)
  expect(page).not.toContain("old")
  expect(Page.render(page, cases, second)).toBe(page)
  const elsewhere = Published.merged(second, "another machine", "later", [row("loop", "5 ms", [])])
  expect(Object.keys(elsewhere.cases)).toEqual(["loop"])
})

it("the page is what the kept results make of it", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/performance.md"), "utf8")
  expect(Page.render(page, cases, Published.read())).toBe(page)
})
