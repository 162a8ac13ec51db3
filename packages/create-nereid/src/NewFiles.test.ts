import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import * as NewFiles from "./NewFiles.ts"

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nereid-new-files-"))
})
afterEach(() => rmSync(folder, { recursive: true }))

const file = (path: string, text = path) => ({ path, text })

const entries = () => readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted()

const read = (path: string) => readFileSync(join(folder, path), "utf8")

it("writes files, with the folders that they need", () => {
  NewFiles.write(join(folder, "new"), [file("a"), file("b/c/d"), file("b/e")])
  expect(entries()).toEqual(["new", "new/a", "new/b", "new/b/c", "new/b/c/d", "new/b/e"])
  expect(read("new/b/c/d")).toBe("b/c/d")
})

it("overwrites nothing, and removes what it wrote before the conflict", () => {
  mkdirSync(join(folder, "new/b"), { recursive: true })
  writeFileSync(join(folder, "new/b/taken"), "mine")
  const files = [file("a/a"), file("b/free"), file("b/taken"), file("z")]
  expect(() => NewFiles.write(join(folder, "new"), files)).toThrow(
    expect.objectContaining({ _tag: "WorkspaceError", message: expect.stringMatching(/^Cannot write .*: EEXIST/) }),
  )
  expect(entries()).toEqual(["new", "new/b", "new/b/taken"])
  expect(read("new/b/taken")).toBe("mine")
})

it("leaves nothing where a file stands in the place of a folder", () => {
  const target = join(folder, "new")
  expect(() => NewFiles.write(target, [file("a"), file("a/b")])).toThrow(/^Cannot write .*: (ENOTDIR|EEXIST|ENOENT)/)
  expect(entries()).toEqual([])
})
