/**
 * The code blocks of documents: each TypeScript block runs in some test or compiles here, and each command of a shell
 * block exists. Commands with an effect of their own, such as an installation, run in .ci/run and in tests of guides.
 */
import { execFileSync } from "node:child_process"
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { nereid, root } from "./Program.ts"
import { Snippets } from "./Snippets.ts"

const documents = [
  "README.md",
  "CONTRIBUTING.md",
  ...globSync("{docs,docs/guides,packages/*,examples/*}/*.md", { cwd: root }),
]

/** The text of the blocks in these languages. */
const blocks = (document: string, languages: string): ReadonlyArray<string> => {
  const found = readFileSync(join(root, document), "utf8").matchAll(
    new RegExp(`^( *)\`\`\`(?:${languages})\\n([^]*?)^\\1\`\`\``, "gm"),
  )
  return [...found].map(([, , text = ""]) => text)
}

/** Guides whose blocks are parts of programs. */
const parts = ["models", "clients", "contracts", "onnx", "operations", "benchmarking"].map(
  (name) => `docs/guides/${name}.md`,
)

it("TypeScript blocks that are parts of programs compile", { timeout: 60_000 }, () => {
  using snippets = new Snippets(parts)
  const configuration = join(snippets.folder, "tsconfig.json")
  // A block may declare what the text after it uses.
  const compilerOptions = { noUnusedLocals: false }
  const extended = { extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.ts"] }
  writeFileSync(configuration, JSON.stringify(extended))
  expect(() =>
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", configuration], { stdio: "inherit" }),
  ).not.toThrow()
})

it("all other TypeScript blocks run in the test of their document", () => {
  const tests = globSync("test/**/*.test.ts", { cwd: root }).map((file) => readFileSync(join(root, file), "utf8"))
  const isRun = (document: string) =>
    parts.includes(document) ||
    // packages.test.ts compiles the README of each package, and examples.test.ts runs the examples themselves.
    /^(?:packages|examples)\//.test(document) ||
    tests.some(
      (text) => text.includes(`"${document}"`) || text.includes(`"${document.replace(/.*\/(.*)\.md$/, "$1")}"`),
    )
  expect(documents.filter((document) => blocks(document, "ts").length > 0 && !isRun(document))).toEqual([])
})

describe("the shell blocks", () => {
  /** Commands, with continued lines joined, and without comments and prompts. */
  const commands = documents.flatMap((document) =>
    blocks(document, "sh|bash").flatMap((block) =>
      block
        .replaceAll(/\\\n\s*/g, " ")
        .split("\n")
        .map((line) => ({ document, line: line.replace(/(?:^|\s)#.*/, "").trim() }))
        .filter(({ line }) => line !== ""),
    ),
  )

  const without = (isKnown: (line: string) => boolean) =>
    commands.filter(({ line }) => !isKnown(line)).map(({ document, line }) => `${document}: ${line}`)

  it("are valid for the shell", () => {
    const invalid = documents.flatMap((document) =>
      blocks(document, "sh|bash").flatMap((block) => {
        try {
          execFileSync("bash", ["-n"], { input: block, stdio: ["pipe", "pipe", "pipe"] })
          return []
        } catch (error) {
          return [`${document}: ${String(error)}`]
        }
      }),
    )
    expect(invalid).toEqual([])
  })

  it("run scripts and files that exist", () => {
    const scripts = ["package.json", "packages/create-nereid/template/package.json"].flatMap((file) => {
      const manifest: { scripts?: Record<string, string> } = JSON.parse(readFileSync(join(root, file), "utf8"))
      return Object.keys(manifest.scripts ?? {})
    })
    expect(
      without((line) => {
        const script = /\bnpm run ([\w:-]+)/.exec(line)?.[1]
        const file = /^(?:npx )?node ((?:examples|test|\.ci)\/\S+)/.exec(line)?.[1]
        return (
          (script === undefined || scripts.includes(script)) && (file === undefined || existsSync(join(root, file)))
        )
      }),
    ).toEqual([])
  })

  it("have only flags that nereid has", { timeout: 60_000 }, async () => {
    const calls = commands.flatMap(({ document, line }) => {
      const [, command = "", rest = ""] = /(?:^|\s|=)nereid (serve|generate|export|bench|check)\b(.*)/.exec(line) ?? []
      return command === "" ? [] : [{ document, line, command, flags: rest.match(/(?<=\s)--[\w-]+/g) ?? [] }]
    })
    expect(calls.length).toBeGreaterThan(20)
    const used = [...new Set(calls.map(({ command }) => command))]
    const help = new Map(
      await Promise.all(
        used.map(async (command) => [command, (await nereid(command, "--help").ended).output] as const),
      ),
    )
    const unknown = calls.flatMap(({ document, line, command, flags }) =>
      flags
        .filter((flag) => !new RegExp(`${flag}(?![\\w-])`).test(help.get(command) ?? ""))
        .map((flag) => `${document}: ${flag} in ${line}`),
    )
    expect(unknown).toEqual([])
  })
})
