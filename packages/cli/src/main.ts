#!/usr/bin/env node
/**
 * Entry of the command `nereid`. It checks the version of Node before it imports anything else, because the
 * dependencies fail with a stack trace on a Node that is too old. Like NodeVersion.ts, it uses only syntax and modules
 * that old versions have.
 */
import { existsSync, readFileSync } from "node:fs"
import * as NodeVersion from "./check/NodeVersion.ts"

/** Of published packages only. */
const bundle = new URL("./bundle/nereid.js", import.meta.url)

const start = async () => {
  if (existsSync(bundle)) {
    const { isPossible } = await import("./BundleChoice.ts")
    if (isPossible(process.argv.slice(2), process.env)) return import(bundle.href)
  }
  return import("./nereid.ts")
}

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
const problem = NodeVersion.problem(process.versions.node, engines.node, process.execPath)

if (problem === undefined) {
  // Half of a start is the compilation of modules. Node keeps the cache in the temporary directory of the system.
  process.getBuiltinModule("node:module").enableCompileCache()
  if (process.argv[2] === "serve") {
    // StartFlags.ts has the reasons, and resets them.
    const { setFlagsFromString } = process.getBuiltinModule("node:v8")
    setFlagsFromString("--semi-space-growth-factor=1")
    setFlagsFromString("--no-maglev")
    setFlagsFromString("--no-turbofan")
  }
  void start()
} else {
  process.exitCode = 1
  const report = () => console.error(problem)
  // The oldest versions cannot run the checks either.
  if (process.argv[2] === "check") import("./oldNodeCheck.ts").catch(report)
  else report()
}
