/** The program of the guide on Python models, as it stands there: only the port is exchanged for a free one. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { Guide } from "../Guide.ts"
import { freePort, hasCurl, Program, root, shell } from "../Program.ts"

const path = "docs/guides/python.md"
const guide = new Guide(path)
afterAll(() => guide[Symbol.dispose]())

it("compiles", { timeout: 60_000 }, () => {
  expect(() => guide.compile()).not.toThrow()
})

it.skipIf(!hasCurl || python === undefined)("main.ts answers as the guide shows", { timeout: 60_000 }, async () => {
  const [, curl = "", response] = /^(curl .*\\\n.*)\n# (.*)$/m.exec(readFileSync(join(root, path), "utf8")) ?? []
  const port = String(await freePort())
  const server = guide.file("main.ts")
  const program = readFileSync(server, "utf8").replace("8000", port)
  writeFileSync(server, program.replace("metrics: false", "metrics: false, announce: true"))
  await using serving = new Program([server], { NEREID_PYTHON: python })
  await serving.match(/Started HTTPService/)
  expect(await shell(curl.replace("8000", port))).toBe(response)
})

it.skipIf(python === undefined)("the model outside the server prints what the guide shows", async () => {
  const text = readFileSync(join(root, path), "utf8")
  const [, input = ""] = /^python3 -m nereid_model \S+ --input '(.*)'$/m.exec(text) ?? []
  const [, printed] = /^The first command prints\n\n```\n([^]*?)```/m.exec(text) ?? []
  const args = ["-m", "nereid_model", "models/scale/1/model.py", "--input", input]
  const variables = { PYTHONPATH: join(root, "packages/python/python") }
  const { output } = await new Program(args, variables, guide.folder, python).ended
  expect(output).toBe(printed)
})
