/** Checks that the benchmark runs every case without wrong replies. Does not check its figures. */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { loads } from "./BesideLoads.ts"
import * as BesidePage from "./BesidePage.ts"
import * as Page from "./Page.ts"
import * as ProcessGroup from "./ProcessGroup.ts"
import * as Published from "./Published.ts"
import type { Row } from "./Results.ts"
import { cases } from "./Suite.ts"

const main = join(import.meta.dirname, "main.ts")

const run = (...flags: ReadonlyArray<string>) => promisify(execFile)(process.execPath, [main, ...flags])

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
  expect(BesidePage.render(page, BesidePage.read())).toBe(page)
})

it("skips another server that the machine does not have, and gives the reason", async () => {
  const env = { ...process.env, TRITON_SERVER: "", PYTHON: process.execPath }
  const triton = await promisify(execFile)(process.execPath, [main, "--short", "--beside=triton"], { env })
  expect(triton.stdout).toContain("Skipped: the variable TRITON_SERVER is not the path of a tritonserver")
  const fastapi = await promisify(execFile)(process.execPath, [main, "--short", "--beside=fastapi"], { env })
  expect(fastapi.stdout).toContain("Skipped: the Python of the variable PYTHON lacks fastapi")
})

it("lists the servers for an unknown one, and the loads for an unknown load", async () => {
  await expect(run("--short", "--beside=other")).rejects.toThrow("expected one of triton, fastify, fastapi")
  await expect(run("--short", "--beside=triton", "--only=fast")).rejects.toThrow("expected one of add-sub-grpc, ")
  await expect(run("--short", "--beside=triton", "--callers=1.5")).rejects.toThrow(
    "--callers is 1.5, expected an integer",
  )
})

it("the page has the rows beside a server that several runs on one machine measured", () => {
  const [first, second] = loads
  if (first === undefined || second === undefined) throw new Error("there are loads")
  const figures = (perSecond: number) => ({ perSecond, p50: 1, p99: 2, p999: 30, cpu: 4, busy: 1, other: 0.5 })
  const comparison = { nereid: figures(300), baseline: figures(200), errors: [], notes: [] }
  const none = { machine: "", servers: {} }
  const one = BesidePage.merged(none, "a machine", "today", "triton", [{ load: first, callers: 16, comparison }])
  const both = BesidePage.merged(one, "a machine", "tomorrow", "triton", [
    { load: first, callers: 1, comparison },
    { load: second, callers: 1, comparison },
  ])
  const marker = "figures beside other servers"
  const page = BesidePage.render(
    `before\n<!-- ${marker}: written by \`npm run bench -- --beside <server> --write\` -->\n<!-- end of ${marker} -->\nafter\n`,
    both,
  )
  expect(page).toMatch(/^before\n.*\nOn a machine\.\n.*\nafter\n$/s)
  expect(page).toMatch(
    /\| add_sub, gRPC +\| 1 +\| \*\*1\.50\*\* +\| 300 \/ 200 +\| 4\.0 \/ 4\.0 +\| 1\.00, 2\.00, 30 \/ 1\.00, 2\.00, 30 \| tomorrow/,
  )
  expect(page).toMatch(/\| 16 +\| \*\*1\.50\*\* .* today/)
  expect(
    Object.keys(BesidePage.merged(both, "another machine", "later", "triton", []).servers["triton"] ?? {}),
  ).toEqual([])
})

it("counts the CPU time of a process group, and nothing of processes that have ended", async () => {
  const busy = spawn(process.execPath, ["-e", "for (;;) {}"], { detached: true, stdio: "ignore" })
  const group = busy.pid ?? 0
  await expect.poll(() => ProcessGroup.cpu(group)).toBeGreaterThan(20_000)
  const ended = once(busy, "exit")
  busy.kill()
  await ended
  expect(ProcessGroup.cpu(group)).toBe(0)
})
