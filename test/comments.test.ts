/** Comments and documents cite only what their readers can open: files of this repository, and public addresses. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")

/** Installed, built or generated. */
const isIgnored = (path: string): boolean => /(^|\/)(node_modules|dist|gen|\.venv)(\/|$)/.test(path)

/** Paths below the root. */
const files = (...patterns: ReadonlyArray<string>): ReadonlyArray<string> =>
  globSync(patterns, { cwd: root }).filter((path) => !isIgnored(path))

const sources = files("{packages,test,examples}/**/*.{ts,tsx}", ".ci/**/*.ts", "docs/site/*.ts")

/** Documents name files as they are. Decisions name them as they were on their day. */
const documents = files("*.md", "{docs,packages,examples}/**/*.md").filter(
  (path) => !path.startsWith("docs/decisions/"),
)

/** The comments of a source file, or the whole text of a document. Web addresses are left out. */
const prose = (path: string): string => {
  const text = readFileSync(join(root, path), "utf8")
  const comments = /\.tsx?$/.test(path) ? (text.match(/\/\*[^]*?\*\/|(?<![:"'`\\\w])\/\/.*/g) ?? []) : [text]
  return comments.join("\n").replaceAll(/https?:\/\/[^\s)]+/g, "")
}

/** The comment blocks of a source file, each with its markers. */
const blocks = (path: string): ReadonlyArray<string> =>
  readFileSync(join(root, path), "utf8").match(/\/\*\*?[^]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm) ?? []

/** Programs whose comments are messages of the compiler. */
const compilerMessages = "test/fixtures/messages/programs.ts"

const citing = [...sources, ...documents].filter((path) => basename(path) !== basename(import.meta.filename))

/** Modules are in PascalCase; a lower-case name may be a file of the reader's own project. */
const moduleName = /(?:[\w-]+\/)*[A-Z]\w*(?:\.\w+)*\.tsx?\b/g

const repositoryPath = /(?<![\w./@-])(?:packages|test|docs|examples|proto|\.ci)\/[\w./-]*\w/g

/** The files of the reader's project that a guide has as code blocks. */
const ownFiles = (path: string): ReadonlyArray<string> => {
  const text = path.endsWith(".md") ? readFileSync(join(root, path), "utf8") : ""
  return [...text.matchAll(/^```\w+\n(?:\/\/|#) (\S+)\n|^`(\S+)`:\n/gm)].map(([, file = "", named = file]) => named)
}

describe("a comment or document names", () => {
  it("only modules that exist", () => {
    const isFile = (name: string) => sources.some((path) => `/${path}`.endsWith(`/${name}`))
    const missing = citing.flatMap((path) =>
      (prose(path).match(moduleName) ?? [])
        .filter((name) => !isFile(name) && !ownFiles(path).some((file) => `/${file}`.endsWith(`/${name}`)))
        .map((name) => `${path}: ${name}`),
    )
    expect(missing).toEqual([])
  })

  it("only paths that exist", () => {
    const missing = citing.flatMap((path) =>
      (prose(path).match(repositoryPath) ?? [])
        .filter((name) => !isIgnored(name) && !existsSync(join(root, name)) && !ownFiles(path).includes(name))
        .map((name) => `${path}: ${name}`),
    )
    expect(missing).toEqual([])
  })

  it("only files that exist, in links", () => {
    const links = documents.flatMap((path) =>
      [...prose(path).matchAll(/\]\(([^\s)#]+)[^\s)]*\)/g)].map(([, link = ""]) => join(path, "..", link)),
    )
    expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([])
  })

  it("no document from elsewhere without its address", () => {
    // Labels of claims such as A6.unload belong to test/conformance/RepositoryLines.ts; gRFC A6 is a public document.
    const foreign = /\b(?:the )?reference(?:'s)?,? [A-Z]\d+|\b[SD]\d\.\d+|\bdesign\.md|(?<!gRFC )\bA\d{1,2}\b(?!\.\w)/g
    const found = citing
      .filter((path) => path !== "test/conformance/RepositoryLines.ts")
      .flatMap((path) => (prose(path).match(foreign) ?? []).map((citation) => `${path}: ${citation}`))
    expect(found).toEqual([])
  })
})

describe("a comment", () => {
  it("does not open with a relative clause", () => {
    const opening = /^\s*(?:\/\*\*?|\/\/)[\s*]*(?:Who|What|Whoever|Whatever|Whose)\b[^?\n]*$/m
    const found = sources.flatMap((path) =>
      blocks(path).flatMap((block) => (opening.exec(block)?.index === 0 ? [`${path}: ${block.split("\n")[0]}`] : [])),
    )
    expect(found).toEqual([])
  })

  it("is not wider than the code", () => {
    const found = sources
      .filter((path) => path !== compilerMessages)
      .flatMap((path) =>
        blocks(path).flatMap((block) =>
          block.split("\n").flatMap((line) => (line.length > 120 ? [`${path}: ${line.trim()}`] : [])),
        ),
      )
    expect(found).toEqual([])
  })
})

it("no row of a document's table stands twice", () => {
  const twice = documents.flatMap((path) => {
    const tables = readFileSync(join(root, path), "utf8").matchAll(/(?:^\|.*\n)+/gm)
    return [...tables].flatMap(([table]) => {
      const rows = table.trimEnd().split("\n")
      return rows.filter((row, index) => rows.indexOf(row) !== index).map((row) => `${path}: ${row}`)
    })
  })
  expect(twice).toEqual([])
})
