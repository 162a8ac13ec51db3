/** Prints the first TypeScript block of a Markdown file, such as the program of the README. */
import { readFileSync } from "node:fs"

const [, , file = "README.md"] = process.argv
const block = /```ts\n([\s\S]*?)```/.exec(readFileSync(file, "utf8"))?.[1]
if (block === undefined) throw new Error(`${file} has no TypeScript block`)
process.stdout.write(block)
