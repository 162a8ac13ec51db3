/**
 * Declarations that an application emits for its own modules: they name only public modules, since everything below
 * `internal/` may change with any release.
 */
import { execFileSync } from "node:child_process"
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")

const folder = mkdtempSync(join(import.meta.dirname, ".declarations-"))

afterAll(() => rmSync(folder, { recursive: true }))

it("contracts, handlers, servers and clients of the examples name no internal module", { timeout: 60_000 }, () => {
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: "../..",
    outDir: "emitted",
  }
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      extends: "../../tsconfig.json",
      compilerOptions,
      include: ["../../examples"],
      exclude: ["../../examples/**/*.test.ts"],
    }),
  )
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", folder])
  const emitted = globSync(join(folder, "emitted/examples/**/*.d.ts"))
  const texts = emitted.map((file) => readFileSync(file, "utf8"))
  expect(texts.join("\n")).toContain("Tensor.Plain")
  expect(texts.flatMap((text) => text.match(/[^\n]*(?:\/internal\/|packages\/)[^\n]*/g) ?? [])).toEqual([])
})
