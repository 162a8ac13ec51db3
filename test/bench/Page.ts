/** docs/performance.md, of which the part between two markers is the benchmark's to write. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const file = join(import.meta.dirname, "../../docs/performance.md")
const begin = "<!-- results: written by `npm run bench -- --write` -->"
const end = "<!-- end of results -->"

export const write = (results: string): void => {
  const page = readFileSync(file, "utf8")
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) throw new Error(`${file} lacks ${begin} … ${end}`)
  writeFileSync(file, `${before}${begin}\n${results}\n${end}${after}`)
}
