/**
 * The latest figures of each case: results.json, from which the page is generated. Cases measured separately are merged
 * if they ran on the same machine.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Row } from "./Results.ts"

/** The figures of one case. */
export interface Entry {
  readonly reached: string
  readonly met?: boolean
  readonly figures: ReadonlyArray<string>
  readonly cpu: string
  /** Absent in figures from before it was reported. */
  readonly latency?: string
  readonly busy: string
  readonly other: string
  /** Cores that other programs kept busy meanwhile. */
  readonly taken: number
  readonly errors: number
  /** When, and how long. */
  readonly measured: string
}

export interface Published {
  readonly machine: string
  readonly cases: Readonly<Record<string, Entry>>
}

const file = join(import.meta.dirname, "results.json")

export const read = (from = file): Published => JSON.parse(readFileSync(from, "utf8"))

/** With these rows; those of other cases stay, unless they are of another machine. */
export const merged = (before: Published, machine: string, measured: string, rows: ReadonlyArray<Row>): Published => ({
  machine,
  cases: {
    ...(before.machine === machine ? before.cases : {}),
    ...Object.fromEntries(rows.map((row) => [row.of.name, entry(row, measured)])),
  },
})

const entry = ({ result, taken }: Row, measured: string): Entry => ({
  reached: result.reached,
  ...(result.met === undefined ? {} : { met: result.met }),
  figures: result.lines,
  cpu: result.cpu,
  latency: result.latency,
  busy: result.busy,
  other: result.other,
  taken: Math.round(taken * 100) / 100,
  errors: result.errors.length,
  measured,
})

export const write = (published: Published, to = file): void =>
  writeFileSync(to, `${JSON.stringify(published, null, 2)}\n`)
