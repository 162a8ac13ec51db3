/** The program of the guide on workers, as it stands there: only the port is exchanged for a free one. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { Guide } from "../Guide.ts"
import { freePort, hasCurl, Program, root, shell } from "../Program.ts"

const path = "docs/guides/workers.md"
const guide = new Guide(path)
afterAll(() => guide[Symbol.dispose]())

it("compiles", { timeout: 60_000 }, () => {
  expect(() => guide.compile()).not.toThrow()
})

it.skipIf(!hasCurl)("server.ts answers as the guide shows", { timeout: 60_000 }, async () => {
  const [, curl = "", response] = /^(curl .*\\\n.*)\n# (.*)$/m.exec(readFileSync(join(root, path), "utf8")) ?? []
  const port = String(await freePort())
  const server = guide.file("server.ts")
  const program = readFileSync(server, "utf8").replace("8000", port)
  writeFileSync(server, program.replace("metrics: false", "metrics: false, announce: true"))
  await using serving = new Program([server])
  await serving.match(/Started HTTPService/)
  expect(await shell(curl.replace("8000", port))).toBe(response)
})
