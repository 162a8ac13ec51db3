/**
 * Checks the licences that an install of the published packages brings: node .ci/licences.ts [--write]. Fails for one
 * that is not allowed, and if the table of docs/guides/licences.md is stale. --write replaces the table.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as LicenceTable from "./LicenceTable.ts"

const root = join(import.meta.dirname, "..")
const guide = join(root, "docs/guides/licences.md")

const lock: { readonly packages: LicenceTable.Locked } = JSON.parse(
  readFileSync(join(root, "package-lock.json"), "utf8"),
)
const rows = LicenceTable.rows(lock.packages, readdirSync(join(root, "packages")))
const errors = [...LicenceTable.problems(rows)]

const text = readFileSync(guide, "utf8")
const current = LicenceTable.replace(text, rows)
if (process.argv.includes("--write")) writeFileSync(guide, current)
else if (text !== current)
  errors.push("docs/guides/licences.md is stale: run 'npm run generate' and commit the result.")

for (const error of errors) console.error(error)
if (errors.length > 0) process.exitCode = 1
