/**
 * Generates the types of a client from a document by openapi-typescript, compiles a client with them, and runs it. The
 * generator needs TypeScript 5, so it has a package.json of its own, which only this installs.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../Program.ts"

const folder = import.meta.dirname
const lock = join(folder, "package-lock.json")
const installed = join(folder, "node_modules", ".installed.json")

/** Why the generator cannot be installed here; undefined if it is installed. */
export const prepare = (): string | undefined => {
  if (existsSync(installed) && readFileSync(installed, "utf8") === readFileSync(lock, "utf8")) return undefined
  const { status, stderr, error } = run("npm", [
    "ci",
    "--prefix",
    folder,
    "--loglevel=error",
    "--no-audit",
    "--no-fund",
  ])
  if (error !== undefined && "code" in error && error.code === "ENOENT") return "there is no npm"
  if (status !== 0 && /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT/.test(stderr)) return "npm's registry does not answer"
  if (status !== 0) throw new Error(`openapi-typescript cannot be installed:\n${stderr}`)
  copyFileSync(lock, installed)
  return undefined
}

/** Returns what failed, with its output; undefined if all went well. `document`: a path. */
export const test = (document: string, url: string): string | undefined => {
  const made = mkdtempSync(join(folder, ".client-"))
  try {
    copyFileSync(join(folder, "client.ts"), join(made, "client.ts"))
    const generator = join(folder, "node_modules", "openapi-typescript", "bin", "cli.js")
    writeFileSync(join(made, "tsconfig.json"), JSON.stringify(configuration))
    const steps: ReadonlyArray<readonly [name: string, args: ReadonlyArray<string>]> = [
      ["openapi-typescript", [generator, document, "--output", join(made, "Api.ts")]],
      ["The compiler", [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", made]],
      ["The client", [join(made, "client.ts"), url]],
    ]
    for (const [name, args] of steps) {
      const { status, stdout, stderr } = run(process.execPath, args)
      if (status !== 0) return `${name} failed:\n${stdout}${stderr}`
    }
    return undefined
  } finally {
    rmSync(made, { recursive: true })
  }
}

const configuration = { extends: "../../../tsconfig.json", include: ["client.ts"], exclude: [] }

const run = (command: string, args: ReadonlyArray<string>) =>
  spawnSync(command, args, { cwd: root, encoding: "utf8", timeout: 120_000, killSignal: "SIGKILL" })
