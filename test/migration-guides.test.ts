/** The programs of the migration guides, run unchanged; each checks its own results. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, it, onTestFinished } from "vitest"
import { Guide } from "./Guide.ts"
import { root } from "./Program.ts"

const names = ["coming-from-pytriton", "coming-from-triton-python-backend"]
const guides = names.map((name) => ({ name, guide: new Guide(`docs/guides/${name}.md`) }))
afterAll(() => {
  for (const { guide } of guides) guide[Symbol.dispose]()
})

describe.each(guides)("$name", ({ guide }) => {
  it.each(readdirSync(guide.folder))("%s runs", async (file) => {
    await import(guide.file(file))
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
