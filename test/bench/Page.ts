/** docs/performance.md, of which the part between two markers is the benchmark's to write. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Results from "./Results.ts"
import { cases } from "./Suite.ts"

const file = join(import.meta.dirname, "../../docs/performance.md")
const begin = "<!-- results: written by `npm run bench -- --write` -->"
const end = "<!-- end of results -->"

/** The rows of cases that were not run stay as they are. */
export const write = (machine: string, how: string, rows: ReadonlyArray<Results.Row>): void => {
  const page = readFileSync(file, "utf8")
  const [before, rest] = page.split(begin)
  const [old, after] = rest?.split(end) ?? []
  if (before === undefined || old === undefined || after === undefined)
    throw new Error(`${file} lacks ${begin} … ${end}`)
  const day = new Date().toISOString().slice(0, 10)
  const known = new Map<string, ReadonlyArray<string>>(
    old.split("\n").flatMap((line) => {
      const cells = line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim())
      const [name] = cells
      return name === undefined ? [] : [[name, cells] as const]
    }),
  )
  for (const row of rows) known.set(row.of.name, Results.cells(row))
  const table = Results.table(
    cases.flatMap(({ name }) => {
      const cells = known.get(name)
      return cells === undefined ? [] : [cells]
    }),
  )
  const results = `Measured on ${day} on ${machine}; ${how}.\n\n${table}`
  writeFileSync(file, `${before}${begin}\n${results}\n${end}${after}`)
}
