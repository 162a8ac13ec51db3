/** The programs of the migration guides, run unchanged; each checks its own results. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Server } from "@nereid/server"
import { afterAll, assert, describe, expect, it, onTestFinished, vi } from "vitest"
import { python } from "../fixtures/python.ts"
import { Guide } from "../Guide.ts"
import { nereid, root } from "../Program.ts"

const names = ["coming-from-pytriton", "coming-from-triton-python-backend"]
const guides = names.map((name) => ({ name, guide: new Guide(`docs/guides/${name}.md`) }))
afterAll(() => {
  for (const { guide } of guides) guide[Symbol.dispose]()
})

describe.each(guides)("$name", ({ guide }) => {
  it.each(readdirSync(guide.folder).filter((file) => file.endsWith(".ts")))("%s runs", async (file) => {
    await import(guide.file(file))
  })
})

describe.skipIf(python === undefined)("a function that stays in Python", () => {
  it("answers its client, and has a generated contract", async () => {
    const guide = guides[0]?.guide
    assert(guide !== undefined)
    vi.stubEnv("NEREID_PYTHON", python)
    onTestFinished(() => void vi.unstubAllEnvs())
    const { InPython, InPythonLive } = await import(guide.file("in-python.ts"))
    const { addAndSubtract } = await import(guide.file("in-python-client.ts"))
    await using server = await Server.start([InPython], InPythonLive, { http: 0, grpc: false, metrics: false })
    const url = `http://localhost:${server.http.port}`
    expect(await addAndSubtract(url)).toEqual([
      [7, 10],
      [3, 4],
    ])
    const { output } = await nereid("generate", url).ended
    expect(output).toContain('Model.Service<AddSub>()("AddSub", {')
    expect(output).toContain("Tensor.FP32(-1)")
  })
})

it("they compile", () => {
  const folder = mkdtempSync(join(root, "test", ".guide-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const configuration = join(folder, "tsconfig.json")
  const include = guides.map(({ guide }) => join(guide.folder, "*.ts"))
  writeFileSync(configuration, JSON.stringify({ extends: join(root, "tsconfig.json"), include }))
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", configuration], { stdio: "inherit" })
}, 60_000)
