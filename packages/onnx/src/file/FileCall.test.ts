/** Regular files, which a call reads, and all others, which it refuses. */
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { hasFifos, makeFifo } from "../../../../test/fixtures/fifo.ts"
import { contentsOf, perform } from "./FileCall.ts"

let folder = ""
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "nereid-files-"))))
afterEach(() => rmSync(folder, { recursive: true }))

const written = (name: string, content: string | Uint8Array) => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

const stamp = () => perform({ name: "stamp", path: folder, maxBytes: 0 }, () => {})

describe("a regular file", () => {
  it("is read up to the limit, which is inclusive", () => {
    const path = written("x", "12345")
    expect(text(contentsOf(path, 5))).toBe("12345")
    expect(() => contentsOf(path, 4)).toThrow("it has 5 bytes, expected at most 4")
    expect(contentsOf(written("empty", ""), 0)).toHaveLength(0)
  })

  it("is read in steps, each of which is progress", () => {
    const content = new Uint8Array(20 * 1024 * 1024).map((_, index) => index % 251)
    let steps = 0
    const read = contentsOf(written("large", content), content.length, () => (steps += 1))
    expect(Buffer.compare(read, content)).toBe(0)
    expect(steps).toBeGreaterThanOrEqual(3)
  })

  // The kernel's files have the size 0, and content.
  it.skipIf(process.platform !== "linux")("that has grown since its size was taken is read to its end", () => {
    expect(text(contentsOf("/proc/self/status", 100_000))).toMatch(/^Name:[^]+VmRSS:[^]+\n$/)
    expect(() => contentsOf("/proc/self/status", 10)).toThrow("it has more than 10 bytes, expected at most 10")
  })
})

describe.runIf(hasFifos)("any other file is refused", () => {
  it.each(["/dev/zero", "/dev/null"])("%s", (path) => {
    expect(() => contentsOf(path, 10)).toThrow("it is a device, expected a regular file")
  })

  it("a FIFO, without waiting for a writer", () => {
    makeFifo(join(folder, "fifo"))
    expect(() => contentsOf(join(folder, "fifo"), 10)).toThrow("it is a FIFO, expected a regular file")
  })

  it("a directory, and a socket", async () => {
    expect(() => contentsOf(folder, 10)).toThrow("it is a directory, expected a regular file")
    const server = createServer().listen(join(folder, "socket"))
    await once(server, "listening")
    expect(() => contentsOf(join(folder, "socket"), 10)).toThrow("it is a socket, expected a regular file")
    server.close()
  })
})

it("a stamp changes with each file below the directory, and survives links that lead nowhere", () => {
  mkdirSync(join(folder, "below"))
  written("below/x", "1")
  symlinkSync(join(folder, "loop"), join(folder, "loop"))
  const first = stamp()
  expect(stamp()).toBe(first)
  expect(first).toContain("ELOOP")
  mkdirSync(join(folder, "below/__pycache__"))
  written("below/__pycache__/x.pyc", "1")
  expect(stamp()).toBe(first)
  written("below/x", "22")
  expect(stamp()).not.toBe(first)
})
