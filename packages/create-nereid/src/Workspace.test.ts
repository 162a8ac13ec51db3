import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import packageJson from "../package.json" with { type: "json" }
import * as Workspace from "./Workspace.ts"

let parent: string

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "nereid-workspace-"))
})
afterEach(() => rmSync(parent, { recursive: true }))

const files = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted()

const json = (...path: ReadonlyArray<string>) => JSON.parse(readFileSync(join(parent, ...path), "utf8"))

const all = [
  ".dockerignore",
  ".gitignore",
  "Dockerfile",
  "README.md",
  "package.json",
  "packages/client/package.json",
  "packages/client/src/index.test.ts",
  "packages/client/src/index.ts",
  "packages/client/src/main.ts",
  "packages/contract/package.json",
  "packages/contract/src/index.ts",
  "packages/server/package.json",
  "packages/server/src/ShoutLive.test.ts",
  "packages/server/src/ShoutLive.ts",
  "packages/server/src/main.ts",
  "tsconfig.json",
]

const refused = (message: string | RegExp) =>
  expect.objectContaining({ _tag: "WorkspaceError", message: expect.stringMatching(message) })

describe("a workspace", () => {
  it("has these files, with its name in place of the template's", () => {
    const text = Workspace.create({ name: "my-models", parent })
    expect(text).toMatch(/^Created my-models\. Next:\n\n {2}cd my-models\n {2}npm install\n/)
    const folder = join(parent, "my-models")
    expect(files(folder)).toEqual(all)
    for (const file of all) expect(readFileSync(join(folder, file), "utf8"), file).not.toContain("nereid-workspace")
    expect(json("my-models/package.json").name).toBe("my-models")
    expect(json("my-models/package.json")).not.toHaveProperty("overrides")
    for (const name of ["contract", "server", "client"]) {
      expect(json("my-models/packages", name, "package.json").name).toBe(`@my-models/${name}`)
    }
  })

  it("asks for this version of Nereid", () => {
    Workspace.create({ name: "my-models", parent })
    for (const name of ["contract", "server", "client"]) {
      const { dependencies, devDependencies } = json("my-models/packages", name, "package.json")
      const ranges = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) =>
        name.startsWith("@nereid/"),
      )
      expect(ranges).not.toEqual([])
      for (const [name, range] of ranges) expect(range, name).toBe(`^${packageJson.version}`)
    }
  })

  it("is created in an existing empty directory as well", () => {
    mkdirSync(join(parent, "my-models"))
    Workspace.create({ name: "my-models", parent })
    expect(files(join(parent, "my-models"))).toEqual(all)
  })

  it("is created in the current directory with '.', beside a Git repository", () => {
    const folder = join(parent, "models")
    mkdirSync(join(folder, ".git"), { recursive: true })
    expect(Workspace.create({ name: ".", parent: folder })).not.toContain("cd ")
    expect(files(folder)).toEqual(all)
    expect(json("models/packages/server/package.json").name).toBe("@models/server")
  })
})

describe("nothing is written", () => {
  it("into a directory that has files, however often", () => {
    Workspace.create({ name: "my-models", parent })
    writeFileSync(join(parent, "my-models/README.md"), "mine")
    for (const name of ["my-models", "my-models"]) {
      const message = /my-models is not empty, it has \.dockerignore, \.gitignore, Dockerfile, 4 more: use another name/
      expect(() => Workspace.create({ name, parent })).toThrow(refused(message))
    }
    expect(readFileSync(join(parent, "my-models/README.md"), "utf8")).toBe("mine")
    expect(files(join(parent, "my-models"))).toEqual(all)
  })

  it("over a file", () => {
    writeFileSync(join(parent, "my-models"), "mine")
    expect(() => Workspace.create({ name: "my-models", parent })).toThrow(refused(/^Cannot use .*my-models: ENOTDIR/))
    expect(readFileSync(join(parent, "my-models"), "utf8")).toBe("mine")
  })

  it("through a symbolic link to nothing", () => {
    symlinkSync(join(parent, "nowhere"), join(parent, "my-models"))
    expect(() => Workspace.create({ name: "my-models", parent })).toThrow(refused(/^Cannot use .*my-models: ENOENT/))
    expect(existsSync(join(parent, "nowhere"))).toBe(false)
  })

  it("into a path that the system refuses", () => {
    const invalid = join(parent, "null\0")
    expect(() => Workspace.create({ name: "my-models", parent: invalid })).toThrow(refused(/^Cannot use /))
    expect(readdirSync(parent)).toEqual([])
  })

  it.each(["../models", "nereid", "", "Models"])("with the name %j", (name) => {
    expect(() => Workspace.create({ name, parent })).toThrow(refused("cannot be the name"))
    expect(readdirSync(parent)).toEqual([])
  })

  it("into a current directory whose name is not allowed", () => {
    const folder = join(parent, "My Models")
    mkdirSync(folder)
    expect(() => Workspace.create({ name: ".", parent: folder })).toThrow(refused('^"My Models" cannot be the name'))
    expect(readdirSync(folder)).toEqual([])
  })
})

describe("packages from tarballs", () => {
  const { version } = packageJson
  const pack = (...names: ReadonlyArray<string>) => {
    mkdirSync(join(parent, "dist"))
    for (const name of names) writeFileSync(join(parent, "dist", name), "")
  }

  it("override those on npm, of this version only", () => {
    const ours = ["core", "http2", "server"]
    pack(...ours.map((name) => `nereid-${name}-${version}.tgz`), "nereid-core-9.9.9.tgz", `other-${version}.tgz`)
    Workspace.create({ name: "my-models", parent, packages: "dist" })
    const address = (name: string) => `file:${join(parent, "dist", `nereid-${name}-${version}.tgz`)}`
    expect(json("my-models/package.json")).toMatchObject({
      name: "my-models",
      overrides: Object.fromEntries(ours.map((name) => [`@nereid/${name}`, address(name)])),
    })
    expect(Object.keys(json("my-models/package.json").overrides)).toHaveLength(3)
  })

  it("must be there", () => {
    pack("nereid-core-9.9.9.tgz")
    const create = (packages: string) => () => Workspace.create({ name: "my-models", parent, packages })
    expect(create("dist")).toThrow(refused(`dist has no nereid-\\*-${version}.tgz: run "npm run build"`))
    expect(create("nowhere")).toThrow(refused("^Cannot read .*nowhere: ENOENT"))
    expect(existsSync(join(parent, "my-models"))).toBe(false)
  })
})
