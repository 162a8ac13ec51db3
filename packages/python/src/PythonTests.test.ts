/** Runs the tests of the Python side with unittest: one test here for each of its files. */
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { python } from "../../../test/fixtures/python.ts"

const folder = join(import.meta.dirname, "../python/tests")

const files = readdirSync(folder).filter((name) => name.startsWith("test_") && name.endsWith(".py"))

/** Exit status and output of unittest for one file. */
const run = (executable: string, file: string) =>
  new Promise<{ readonly status: number | null; readonly output: string }>((resolve, reject) => {
    const child = spawn(executable, ["-B", "-m", "unittest", file], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text))
    }
    child.on("error", reject).on("close", (status) => resolve({ status, output }))
  })

describe.skipIf(python === undefined)("the Python side", () => {
  it.each(files)("%s", { timeout: 180_000 }, async (file) => {
    const { status, output } = await run(python!, file)
    expect(status, output).toBe(0)
  })
})
