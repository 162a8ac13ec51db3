#!/usr/bin/env node
/** The command of `npm create nereid`. Loads the rest of the package only on a Node that it supports. */
import { readFileSync } from "node:fs"
import { isSupported } from "./NodeVersion.ts"

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))

if (isSupported(process.versions.node, engines.node)) void import("./command.ts")
else {
  const needed = engines.node.replace(">=", "")
  console.error(
    `Error: Nereid needs Node ${needed} or newer, and this is Node ${process.versions.node}. Nothing was created.`,
  )
  process.exitCode = 1
}
