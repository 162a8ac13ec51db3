/** Changes of real files. The processes that they restart: test/programs/watch.test.ts. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { ChangedFiles } from "./ChangedFiles.ts"

const folder = () => {
  const path = mkdtempSync(join(tmpdir(), "nereid-changed-"))
  onTestFinished(() => rmSync(path, { recursive: true }))
  mkdirSync(join(path, "parts"))
  return (name: string) => join(path, name)
}

const watching = () => {
  const changes: Array<ReadonlyArray<string>> = []
  let wake = () => {}
  const files = new ChangedFiles((paths) => {
    changes.push(paths)
    wake()
  }, expect.unreachable)
  onTestFinished(() => files.close())
  /** The next change that has not been read. */
  const next = async (): Promise<ReadonlyArray<string>> => {
    const change = changes.shift()
    if (change !== undefined) return change.toSorted()
    await new Promise<void>((resolve) => (wake = resolve))
    return next()
  }
  return { files, next }
}

const never = Infinity

it("reports files that are written, replaced, created and removed, in one list for several at a time", async () => {
  const path = folder()
  writeFileSync(path("a.ts"), "1")
  writeFileSync(path("parts/b.ts"), "1")
  const { files, next } = watching()
  for (const name of ["a.ts", "parts/b.ts", "missing.ts"]) files.add(path(name), never)
  writeFileSync(path("a.ts"), "2")
  writeFileSync(path("parts/b.ts.new"), "2")
  renameSync(path("parts/b.ts.new"), path("parts/b.ts"))
  expect(await next()).toEqual([path("a.ts"), path("parts/b.ts")])
  writeFileSync(path("missing.ts"), "1")
  expect(await next()).toEqual([path("missing.ts")])
  rmSync(path("a.ts"))
  expect(await next()).toEqual([path("a.ts")])
})

it("ignores a save without a change, other files, and files that are no longer watched", async () => {
  const path = folder()
  for (const name of ["a.ts", "b.ts", "c.ts", "parts/d.ts"]) writeFileSync(path(name), "1")
  const { files, next } = watching()
  for (const name of ["a.ts", "b.ts", "parts/d.ts"]) files.add(path(name), never)
  files.keepOnly(new Set([path("a.ts"), path("b.ts")]))
  writeFileSync(path("parts/d.ts"), "2")
  writeFileSync(path("c.ts"), "2")
  writeFileSync(path("a.ts"), "1")
  // Last, so that its event comes behind those of the others.
  writeFileSync(path("b.ts"), "2")
  expect(await next()).toEqual([path("b.ts")])
})

it("reports a file that was written after a version began to read it; a time in the future is no reason", async () => {
  const path = folder()
  for (const name of ["old.ts", "new.ts", "future.ts"]) writeFileSync(path(name), "1")
  const now = Date.now() / 1000
  utimesSync(path("old.ts"), now - 60, now - 60)
  utimesSync(path("new.ts"), now - 10, now - 10)
  utimesSync(path("future.ts"), now + 600, now + 600)
  const { files, next } = watching()
  for (const name of ["old.ts", "future.ts", "new.ts"]) files.add(path(name), (now - 30) * 1000)
  expect(await next()).toEqual([path("new.ts")])
})
