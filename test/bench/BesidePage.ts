/** The figures beside other servers: beside.json, and the part of docs/performance.md that is made from it. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type BesideLoad, loads } from "./BesideLoads.ts"
import type { Comparison } from "./Comparison.ts"
import { pair, pairs } from "./Judges.ts"
import * as OtherServer from "./OtherServer.ts"
import * as Page from "./Page.ts"
import * as Table from "./Table.ts"

export interface BesideRow {
  readonly load: BesideLoad
  readonly callers: number
  readonly comparison: Comparison
}

/** The figures of one row, as the page shows them. */
export interface BesideEntry {
  readonly ratio: string
  readonly rates: string
  readonly cpu: string
  readonly latency: string
  readonly errors: number
  /** When, and how long. */
  readonly measured: string
}

export interface PublishedBeside {
  readonly machine: string
  /** By server, load and number of callers. */
  readonly servers: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, BesideEntry>>>>>>
}

const file = join(import.meta.dirname, "beside.json")

export const read = (from = file): PublishedBeside => JSON.parse(readFileSync(from, "utf8"))

export const write = (published: PublishedBeside, to = file): void =>
  writeFileSync(to, `${JSON.stringify(published, null, 2)}\n`)

const entry = ({ comparison }: BesideRow, measured: string): BesideEntry => {
  const { nereid, baseline, errors } = comparison
  const { cpu, latency } = pairs(comparison)
  return {
    ratio: (nereid.perSecond / baseline.perSecond).toFixed(2),
    rates: pair(nereid.perSecond, baseline.perSecond, 0),
    cpu,
    latency,
    errors: errors.length,
    measured,
  }
}

/** With these rows; others stay, unless they are of another machine. */
export const merged = (
  before: PublishedBeside,
  machine: string,
  measured: string,
  server: string,
  rows: ReadonlyArray<BesideRow>,
): PublishedBeside => {
  const servers = before.machine === machine ? before.servers : {}
  const changed: Record<string, Record<string, BesideEntry>> = structuredClone(servers[server] ?? {})
  for (const row of rows) (changed[row.load.name] ??= {})[row.callers] = entry(row, measured)
  return { machine, servers: { ...servers, [server]: changed } }
}

/** One line for the terminal, at once. */
export const summary = (row: BesideRow): string => {
  const { ratio, rates, cpu, latency, errors } = entry(row, "")
  const wrong = errors === 0 ? "" : `; ${errors} errors`
  return `${row.load.name}, ${row.callers}: ${ratio} (${rates} /s; CPU µs ${cpu}; p50, p99, p99.9 ms ${latency}${wrong})`
}

/** The page with its part as these figures have it. */
export const render = (page: string, published: PublishedBeside): string =>
  Page.replace(page, "figures beside other servers", "npm run bench -- --beside <server> --write", text(published))

const text = ({ machine, servers }: PublishedBeside): string => {
  const known = Object.entries(servers).filter(([name]) => OtherServer.isName(name))
  if (known.length === 0) return "Nothing has been measured since the benchmark was last changed."
  return [`On ${machine}.`, ...known.flatMap(([name, figures]) => [title(name), table(figures)])].join("\n\n")
}

const title = (name: string): string =>
  OtherServer.isName(name) ? `Nereid / ${OtherServer.kinds[name].description}:` : name

const table = (figures: Readonly<Record<string, Readonly<Record<string, BesideEntry>>>>): string =>
  Table.table(
    [
      ["requests", "callers", "ratio", "requests/s", "CPU µs/request", "p50, p99, p99.9 ms", "measured"],
      ["---", "--:", "--:", "--:", "--:", "--:", "---"],
    ],
    loads.flatMap(({ name, description }) =>
      Object.entries(figures[name] ?? {}).map(([callers, { ratio, rates, cpu, latency, measured }]) => [
        description,
        callers,
        `**${ratio}**`,
        rates,
        cpu,
        latency,
        measured,
      ]),
    ),
  )
