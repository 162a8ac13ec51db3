/**
 * Sizes of browser bundles by esbuild and Vite, minified, with Effect. The table of docs/guides/clients.md holds them.
 * The packages are bundled as they are published: as JavaScript, with imports of Effect's modules.
 */
import { build as esbuild, type Plugin } from "esbuild"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { join, sep } from "node:path"
import { build as vite } from "vite"
import { afterAll, describe, expect, it } from "vitest"
import * as EffectImports from "../.ci/EffectImports.ts"

const root = join(import.meta.dirname, "..")
const sources = join(root, "packages") + sep

/** Allowed difference between a documented and a measured size, as a fraction. */
const tolerance = 0.05

const isSource = (file: string) => file.startsWith(sources) && file.endsWith(".ts")

const published = (file: string): string =>
  EffectImports.rewrite(stripTypeScriptTypes(readFileSync(file, "utf8")), file)

const bundlers: Readonly<Record<string, (entry: string) => Promise<string>>> = {
  esbuild: async (entry) => {
    const plugin: Plugin = {
      name: "published",
      setup: (build) =>
        build.onLoad({ filter: /\.ts$/ }, ({ path }) =>
          isSource(path) ? { contents: published(path), loader: "js" } : undefined,
        ),
    }
    const { outputFiles } = await esbuild({
      entryPoints: [entry],
      bundle: true,
      minify: true,
      format: "esm",
      platform: "browser",
      write: false,
      plugins: [plugin],
    })
    return outputFiles.map(({ text }) => text).join("")
  },
  Vite: async (entry) => {
    const result = await vite({
      root: join(entry, ".."),
      configFile: false,
      logLevel: "error",
      build: { write: false, rolldownOptions: { input: entry } },
      plugins: [
        {
          name: "published",
          enforce: "pre",
          load: (id) => (isSource(id) ? { code: published(id), moduleType: "js" } : undefined),
        },
      ],
    })
    if (!("output" in result)) throw new Error("Vite returned no bundle.")
    return result.output.map((file) => (file.type === "chunk" ? file.code : "")).join("")
  },
}

const imports: Readonly<Record<string, string>> = {
  '`import { Model, Tensor } from "@nereid/core"`': 'import { Model, Tensor } from "@nereid/core"\n',
  '`import * as Model from "@nereid/core/Model"`':
    'import * as Model from "@nereid/core/Model"\nimport * as Tensor from "@nereid/core/Tensor"\n',
}

const contract = `
class Sentiment extends Model.Service()("sentiment", {
  inputs: { TEXT: Tensor.utf8(), input_ids: Tensor.INT64("n"), threshold: Tensor.optional(Tensor.scalar("FP32")) },
  outputs: { logits: Tensor.FP32(2), CLASS: Tensor.labels(["negative", "positive"]) },
  maxBatchSize: 4,
}) {}
`

const applications = [
  `import { Client } from "@nereid/client/browser"\n${contract}
globalThis.connect = () => Client.connect(Sentiment, { url: "https://models.example" })\n`,
  `${contract}\nglobalThis.contract = Sentiment\n`,
]

/** Kilobytes of the row of the table: of the client with a contract, and of the contract alone. */
const documented = (bundler: string, style: string): ReadonlyArray<number> => {
  const guide = readFileSync(join(root, "docs/guides/clients.md"), "utf8")
  const row = guide.split("\n").find((line) => line.startsWith(`| ${bundler} | ${style} |`))
  return [...(row ?? "").matchAll(/(\d+) KB/g)].map(([, kilobytes]) => Number(kilobytes))
}

const folder = mkdtempSync(join(root, "test", ".bundle-"))
afterAll(() => rmSync(folder, { recursive: true }))

describe.each(Object.keys(bundlers))("%s", (bundler) => {
  it.each(Object.keys(imports))("with %s: the documented sizes", async (style) => {
    const sizes: Array<number> = []
    for (const [index, application] of applications.entries()) {
      const entry = join(folder, `${bundler}-${index}.js`)
      writeFileSync(entry, `${imports[style]}${application}`)
      const code = (await bundlers[bundler]?.(entry)) ?? ""
      expect(code).toContain("sentiment")
      expect(code).not.toMatch(/\bfrom ?"|\brequire\("/)
      sizes.push(Math.round(code.length / 1000))
    }
    const expected = documented(bundler, style)
    expect(expected, `documented, measured ${sizes.join(" KB, ")} KB`).toHaveLength(sizes.length)
    for (const [index, size] of sizes.entries()) {
      const limit = (expected[index] ?? 0) * tolerance
      expect(
        Math.abs(size - (expected[index] ?? 0)),
        `documented ${expected[index]} KB, measured ${size} KB`,
      ).toBeLessThan(limit)
    }
  })
})
