/**
 * `npm run bench`: measures the server and the client against bare Node.js programs that only move the bytes.
 * docs/performance.md describes the cases and the figures.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import * as Flags from "../Flags.ts"
import * as Child from "./Child.ts"
import * as Cores from "./Cores.ts"
import * as OtherProcesses from "./OtherProcesses.ts"
import * as Page from "./Page.ts"
import * as Published from "./Published.ts"
import * as Results from "./Results.ts"
import type { Bench, Case } from "./Case.ts"
import { cases } from "./Suite.ts"

const flags = Flags.read("npm run bench -- [flags]", {
  only: { type: "string", description: "Names of cases, with commas between them. Default all." },
  seconds: { type: "string", description: "Of each measurement." },
  rounds: { type: "string", description: "Rounds of each measurement, whose median counts." },
  "warm-up": { type: "string", description: "Seconds of load on new processes before the first round. Default 10." },
  "cpu-prof": {
    type: "string",
    description: "Folder for CPU profiles from a separate round; the terminal shows their top functions.",
  },
  short: {
    type: "boolean",
    default: false,
    description: "Whether everything works, in a few seconds. Its numbers mean nothing.",
  },
  beside: {
    type: "string",
    description:
      'Measures our server beside another one: "triton", "fastify" or "fastapi". `--only` then names its loads.',
  },
  callers: {
    type: "string",
    description: "Numbers of callers beside another server, with commas between them. Default 1,16,64,256.",
  },
  write: { type: "boolean", default: false, description: "Puts the results into docs/performance.md." },
})
if (flags.short && flags.write) throw new Error("--write is for numbers that mean something: not with --short")

const page = join(import.meta.dirname, "../../docs/performance.md")

const positive = (name: string, text: string): number => {
  const number = Number(text)
  if (number > 0) return number
  throw new Error(`--${name} is ${text}, expected a number above 0`)
}
const settings = {
  seconds: positive("seconds", flags.seconds ?? (flags.short ? "0.05" : "2")),
  rounds: Math.ceil(positive("rounds", flags.rounds ?? (flags.short ? "1" : "5"))),
  warmUp: positive("warm-up", flags["warm-up"] ?? (flags.short ? "0.05" : "10")),
  profiles: flags["cpu-prof"],
}
if (settings.profiles !== undefined) mkdirSync(settings.profiles, { recursive: true })

const cores = Cores.pin()
const pinned =
  cores === undefined
    ? "not pinned to cores"
    : `the servers pinned to core ${cores.server}, the load to core ${cores.load}`
const machine = `${cpus().length} cores of ${cpus()[0]?.model ?? "unknown"}, Node ${process.version}; ${pinned}`
console.log(`${machine}; medians of ${settings.rounds} × ${settings.seconds} s\n`)

const measured = `${new Date().toISOString().slice(0, 10)}, ${settings.rounds} × ${settings.seconds} s`

const complain = (errors: ReadonlyArray<string>): void => {
  if (errors.length === 0) return
  console.error(`${errors.length} errors, of these kinds:`)
  for (const kind of new Set(errors)) console.error(`  ${kind}`)
  process.exitCode = 1
}

/** Every case runs in separate processes, so that it does not affect others. */
const inItsOwnProcesses = async (
  run: Case["run"],
): Promise<{ result: Awaited<ReturnType<Case["run"]>>; taken: number }> => {
  const children: Array<Child.Child> = []
  const start: Bench["start"] = async (program, place = "server", nodeOptions = []) => {
    const core = cores === undefined || place === "both" ? undefined : cores[place]
    const all = cores === undefined ? undefined : `${cores.server},${cores.load}`
    const child = await Child.start(
      new URL(`./${program}.ts`, import.meta.url),
      place === "both" ? all : core,
      nodeOptions,
    )
    children.push(child)
    return child
  }
  const otherProcesses = OtherProcesses.watch()
  const result = await run({ settings, start })
  const taken = await otherProcesses(children)
  await Promise.all(children.map((child) => child.stop()))
  return { result, taken }
}

const measureCases = async (): Promise<void> => {
  const chosen = (flags.only?.split(",") ?? cases.map(({ name }) => name)).map((requested): Case => {
    const found = cases.find(({ name }) => name === requested)
    if (found !== undefined) return found
    throw new Error(`--only names ${requested}, expected one of ${cases.map(({ name }) => name).join(", ")}`)
  })
  const rows: Array<Results.Row> = []
  for (const one of chosen) {
    console.error(`${one.name}: ${one.description} …`)
    const { result, taken } = await inItsOwnProcesses(one.run)
    const row = { of: one, result, taken }
    rows.push(row)
    console.error(`${Results.summary(row)}\n`)
    for (const note of result.notes) console.log(`${note}\n`)
  }

  console.log(Results.table(rows.map(Results.cells)))
  if (flags.write) {
    const published = Published.merged(Published.read(), machine, measured, rows)
    Published.write(published)
    writeFileSync(page, Page.render(readFileSync(page, "utf8"), cases, published))
  }

  complain(rows.flatMap(({ result }) => result.errors))
}

const measureBeside = async (other: string): Promise<void> => {
  const { isName, kinds } = await import("./OtherServer.ts")
  const Beside = await import("./Beside.ts")
  const BesidePage = await import("./BesidePage.ts")
  if (!isName(other)) throw new Error(`--beside names ${other}, expected one of ${Object.keys(kinds).join(", ")}`)
  const callers = flags.callers?.split(",").map((text) => {
    const count = positive("callers", text)
    if (Number.isInteger(count)) return count
    throw new Error(`--callers is ${text}, expected an integer`)
  })
  const errors: Array<string> = []
  const rows = await Beside.measure({ other, settings, cores, only: flags.only?.split(","), callers }, errors)
  if (flags.write && rows.length > 0) {
    const published = BesidePage.merged(BesidePage.read(), machine, measured, other, rows)
    BesidePage.write(published)
    writeFileSync(page, BesidePage.render(readFileSync(page, "utf8"), published))
  }
  complain(errors)
}

if (flags.beside === undefined) await measureCases()
else await measureBeside(flags.beside)
