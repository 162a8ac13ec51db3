/** The entry of the command, as a process. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"

it("keeps compiled modules for the next start", () => {
  const directory = mkdtempSync(join(tmpdir(), "nereid-main-"))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const { NODE_COMPILE_CACHE: _, NODE_DISABLE_COMPILE_CACHE: __, ...variables } = process.env
  execFileSync(process.execPath, [join(import.meta.dirname, "main.ts"), "--version"], {
    env: { ...variables, TMPDIR: directory },
  })
  expect(readdirSync(directory)).toEqual(["node-compile-cache"])
})
