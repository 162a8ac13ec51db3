/** Colours of log lines, on a pipe and on a real terminal. */
import { execFileSync, spawnSync } from "node:child_process"
import { expect, it } from "vitest"

const program = `
  import * as Logging from "./Logging.ts"
  import { Effect } from "effect"
  const format = process.argv[1]
  Effect.runFork(Effect.logWarning("a message").pipe(Effect.provide(Logging.layer({ format }))))
`

/** An environment without what Node reads to decide about colours, such as NO_COLOR, CI and TMUX. */
const plain = { PATH: process.env.PATH, HOME: process.env.HOME }

const args = (format: string) => ["--input-type=module", "--eval", program, format]

/** Returns the output of the program on stderr, which is a pipe. */
const piped = (format: string, variables: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, args(format), {
    cwd: import.meta.dirname,
    env: { ...plain, ...variables },
  }).stderr.toString()

const escape = "\u001b["

it("a pipe has no colours, unless FORCE_COLOR says so; JSON never has", () => {
  expect(piped("default")).toMatch(/^W\d{4} .*\] "a message"\n$/)
  const coloured = piped("default", { FORCE_COLOR: "1" })
  expect(coloured.startsWith(`${escape}33mW`)).toBe(true)
  expect(coloured.endsWith(`]${escape}39m "a message"\n`)).toBe(true)
  expect(piped("default", { FORCE_COLOR: "0" })).not.toContain(escape)
  expect(JSON.parse(piped("json", { FORCE_COLOR: "1" }))).toMatchObject({ message: "a message" })
})

/** Runs a command in a pseudo-terminal. */
const hasScript = process.platform === "linux" && spawnSync("script", ["-qec", "true", "/dev/null"]).status === 0

it.skipIf(!hasScript)("a terminal has colours, unless NO_COLOR says otherwise", () => {
  const onTerminal = (format: string, variables: NodeJS.ProcessEnv = {}) => {
    const quoted = [process.execPath, ...args(format)].map((arg) => `'${arg.replaceAll("'", `'\\''`)}'`)
    const env = { ...plain, TERM: "xterm-256color", ...variables }
    return execFileSync("script", ["-qec", quoted.join(" "), "/dev/null"], { cwd: import.meta.dirname, env }).toString()
  }
  expect(onTerminal("ISO8601")).toContain(`${escape}33m`)
  expect(onTerminal("ISO8601", { NO_COLOR: "1" })).toMatch(/^[\d-]+T[\d:]+Z W .*\] "a message"\r\n$/)
  expect(JSON.parse(onTerminal("json"))).toMatchObject({ level: "WARN" })
})
