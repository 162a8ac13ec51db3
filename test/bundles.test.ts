/**
 * Lists what a bundler keeps of these packages for an application in a browser: a contract alone, and a client with a
 * contract. Neither executes models, so neither contains the folders of core that do. Tables hold the folders, so that
 * a change is visible.
 */
import { Result } from "effect"
import { readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { type OutputChunk, rolldown } from "rolldown"
import { parseAst } from "rolldown/parseAst"
import { describe, expect, it } from "vitest"
import * as ContractFile from "@nereid/core/internal/contract/ContractFile"
import { type Package, packages, shown, sources } from "./Imports.ts"

const root = join(import.meta.dirname, "..")

/** A module as `nereid generate` writes it, with every kind of field that it knows. */
const generated = Result.getOrThrow(
  ContractFile.print(
    [
      {
        contract: {
          name: "bert",
          inputs: [
            { name: "TEXT", datatype: "BYTES", dims: [1], optional: false },
            { name: "input_ids", datatype: "INT64", dims: ["sequence"], optional: false },
            { name: "threshold", datatype: "FP32", dims: [1], optional: true },
          ],
          outputs: [
            { name: "logits", datatype: "FP32", dims: [2], optional: false },
            { name: "CLASS", datatype: "INT32", dims: [1], optional: false, labels: ["negative", "positive"] },
          ],
          maxBatchSize: 4,
        },
        source: "models",
      },
    ],
    { text: true },
  ),
)

const namespaces = 'import { Model, Tensor } from "@nereid/core"'

const modules = 'import * as Model from "@nereid/core/Model"\nimport * as Tensor from "@nereid/core/Tensor"'

const client = `
import { Client } from "@nereid/client/browser"
export const connect = () => Client.connect(Bert, { url: "https://models.example" })
`

interface Expected {
  readonly folders: ReadonlyArray<string>
  /** Upper limit of the minified bundle, Effect included; the figure in docs/guides/clients.md is below it. */
  readonly kilobytes: number
}

const contractBundle: Expected = {
  folders: ["core/call", "core/error", "core/grpc", "core/model", "core/tensor", "core/wire"],
  kilobytes: 100,
}

const clientBundle: Expected = {
  folders: [
    "client",
    "client/channel",
    "client/http",
    "client/remote",
    "client/replicas",
    "core/call",
    "core/codec/generate",
    "core/codec/json",
    "core/error",
    "core/gen",
    "core/grpc",
    "core/metrics",
    "core/model",
    "core/request",
    "core/running",
    "core/tensor",
    "core/wire",
  ],
  kilobytes: 230,
}

/** The folders of core that execute models. */
const executing = [
  "batch",
  "cache",
  "ensemble",
  "handler",
  "instance",
  "lifecycle",
  "provide",
  "scheduler",
  "simulation",
  "testing",
].map((folder) => `core/${folder}`)

/**
 * Bundles a file of an application, with the package resolution of any importer in this repository. `text` replaces its
 * content.
 */
const bundle = async (input: string, text?: string, minify = false): Promise<OutputChunk> => {
  await using build = await rolldown({
    input,
    platform: "browser",
    plugins: [
      {
        name: "entry",
        resolveId: (id) => (id === input ? id : undefined),
        load: (id) => (id === input ? text : undefined),
      },
    ],
  })
  const { output } = await build.generate({ minify })
  expect(output.length, "files of the bundle").toBe(1)
  return output[0]
}

const entry = join(root, "test/application.ts")

/**
 * The folders of these packages whose code remains, such as `core/model`; `client` holds the files on its top level.
 */
const folders = ({ modules }: OutputChunk): ReadonlyArray<string> => {
  const kept = Object.entries(modules).flatMap(([path, { renderedLength }]) => (renderedLength > 0 ? [path] : []))
  const ours = kept.map((path) => relative(join(root, "packages"), path)).filter((path) => !path.startsWith(".."))
  return [...new Set(ours.map((path) => dirname(path).replace("/src", "")))].toSorted()
}

describe.each([
  ["@nereid/core", generated],
  ["@nereid/core/Model and @nereid/core/Tensor", `${modules}${generated.slice(namespaces.length)}`],
])("with names from %s", (_, contract) => {
  it.each([
    ["a contract", contract, contractBundle],
    ["a client for browsers", `${contract}${client}`, clientBundle],
  ])("%s needs these folders, and no module of Node", async (_, text, expected) => {
    const chunk = await bundle(entry, text)
    expect(folders(chunk)).toEqual(expected.folders)
    expect([...chunk.imports, ...chunk.dynamicImports]).toEqual([])
    expect(expected.folders.filter((folder) => executing.includes(folder))).toEqual([])
    const { code } = await bundle(entry, text, true)
    expect(code.length / 1000).toBeLessThan(expected.kilobytes)
  })
})

const examples = sources(join(root, "examples")).filter((path) => path.endsWith("/contract.ts"))

it.each(examples.map(shown))("%s brings nothing that executes models, and no module of Node", async (path) => {
  const chunk = await bundle(join(root, path))
  expect(folders(chunk)).toContain("core/model")
  expect(folders(chunk).filter((folder) => executing.includes(folder))).toEqual([])
  expect([...chunk.imports, ...chunk.dynamicImports]).toEqual([])
})

it("the public index of core leaves nothing where no name of it is used", async () => {
  expect((await bundle(entry, 'import "@nereid/core"')).code.trim()).toBe("")
})

/** Whether importing the file does more than define its names. Initializers of variables are not checked. */
const acts = (file: string): boolean =>
  parseAst(readFileSync(file, "utf8"), { lang: "ts" }).body.some((statement) =>
    statement.type === "ImportDeclaration"
      ? statement.specifiers.length === 0
      : !/^(Export|Variable|Function|Class|TS)/.test(statement.type),
  )

it.each(packages)("$name: sideEffects names the files that act when they are imported", (each: Package) => {
  const { manifest, files, name } = each
  const acting = files.filter(acts).map((file) => `./${relative(join(root, "packages", name), file)}`)
  expect(manifest.sideEffects).toEqual(acting.length === 0 ? false : acting.toSorted())
})
