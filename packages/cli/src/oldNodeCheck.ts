/** `nereid check` on a Node that is too old for the other commands, without the parser of the command line. */
import { readFileSync } from "node:fs"
import * as CheckReport from "./check/CheckReport.ts"

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
await CheckReport.print(manifest, process.argv.includes("--json"))
