/** Environments of conda-pack: unpacked once, and nothing outside of their folder is written. */
import { execFileSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import * as EnvironmentArchive from "./EnvironmentArchive.ts"

let folder = ""
const at = (...path: ReadonlyArray<string>) => join(folder, ...path)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nereid-archive-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Entry {
  readonly path: string
  readonly type?: string
  readonly target?: string
  readonly text?: string
}

/** One entry in the format of ustar. */
const entry = ({ path, type = "0", target = "", text = "" }: Entry): Buffer => {
  const header = Buffer.alloc(512)
  const contents = Buffer.from(text)
  header.write(path, 0)
  header.write("0000755\0", 100)
  header.write(`${contents.length.toString(8).padStart(11, "0")}\0`, 124)
  header.write("        ", 148)
  header.write(type, 156)
  header.write(target, 157)
  header.write("ustar\x0000", 257)
  let sum = 0
  for (const byte of header) sum += byte
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148)
  return Buffer.concat([header, contents, Buffer.alloc((512 - (contents.length % 512)) % 512)])
}

const archive = (...entries: ReadonlyArray<Entry>): string => {
  const path = at("env.tar.gz")
  writeFileSync(path, gzipSync(Buffer.concat([...entries.map(entry), Buffer.alloc(1024)])))
  return path
}

const unpack = (path: string, limits?: EnvironmentArchive.ArchiveLimits) =>
  Effect.runPromise(EnvironmentArchive.unpack(path, at("cache"), limits))

describe("an archive", () => {
  it("is unpacked with folders, files, their permissions, links and long names", async () => {
    const long = `${"folder/".repeat(30)}file.py`
    mkdirSync(at("env", "bin"), { recursive: true })
    mkdirSync(join(at("env"), long, ".."), { recursive: true })
    writeFileSync(at("env", "bin", "python3.11"), "binary", { mode: 0o755 })
    writeFileSync(join(at("env"), long), "x = 1")
    execFileSync("ln", ["-s", "python3.11", at("env", "bin", "python3")])
    execFileSync("ln", [at("env", "bin", "python3.11"), at("env", "bin", "python")])
    for (const format of ["gnu", "pax"]) {
      const path = at(`${format}.tar.gz`)
      execFileSync("tar", ["--format", format, "-czf", path, "-C", at("env"), "."])
      const unpacked = await unpack(path)
      expect(readFileSync(join(unpacked, long), "utf8")).toBe("x = 1")
      expect(readFileSync(join(unpacked, "bin/python3"), "utf8")).toBe("binary")
      expect(readFileSync(join(unpacked, "bin/python"), "utf8")).toBe("binary")
      expect(lstatSync(join(unpacked, "bin/python3")).isSymbolicLink()).toBe(true)
      expect(lstatSync(join(unpacked, "bin/python3.11")).mode & 0o111).toBe(0o111)
    }
  })

  // P4.archive.once@local P4.archive.again@local
  it("is unpacked once, and again when it has changed; the contents before that are removed", async () => {
    const path = archive({ path: "a", text: "1" })
    const [first, same] = await Promise.all([unpack(path), unpack(path)])
    expect(same).toBe(first)
    writeFileSync(join(first, "kept"), "")
    expect(await unpack(path)).toBe(first)
    expect(existsSync(join(first, "kept"))).toBe(true)
    archive({ path: "a", text: "2" })
    utimesSync(path, 1, 1)
    const second = await unpack(path)
    expect(readFileSync(join(second, "a"), "utf8")).toBe("2")
    expect(readdirSync(at("cache"))).toHaveLength(1)
  })

  // P4.archive.parent@local P4.archive.absolute@local P4.archive.links@local
  it.each<readonly [string, string, ReadonlyArray<Entry>]>([
    ["a path with ..", "Path contains '..': a/../../b", [{ path: "a/../../b" }]],
    ["an absolute path", "Path is absolute: /tmp/b", [{ path: "/tmp/b" }]],
    [
      "a file behind a symbolic link",
      "it would write through a symbolic link: a/b",
      [
        { path: "a", type: "2", target: ".." },
        { path: "a/b", text: "x" },
      ],
    ],
    ["a hard link to a path with ..", "Path contains '..': ../x", [{ path: "a", type: "1", target: "../x" }]],
    ["a device", 'the archive has an entry of type "3"', [{ path: "a", type: "3" }]],
  ])("is refused with %s, and leaves nothing", async (_, problem, entries) => {
    const path = archive(...entries)
    await expect(unpack(path)).rejects.toThrow(`cannot unpack the Python environment ${path}: ${problem}`)
    expect(readdirSync(at("cache"))).toEqual([])
    expect(existsSync(at("b"))).toBe(false)
  })

  it("with an entry behind a link of the same path replaces the link", async () => {
    writeFileSync(at("outside"), "untouched")
    const path = archive({ path: "a", type: "2", target: at("outside") }, { path: "a", text: "x" })
    expect(readFileSync(join(await unpack(path), "a"), "utf8")).toBe("x")
    expect(readFileSync(at("outside"), "utf8")).toBe("untouched")
  })

  it("is refused beyond its limits", async () => {
    const path = archive({ path: "a", text: "123" }, { path: "b", text: "456" })
    await expect(unpack(path, { maxBytes: 5, maxEntries: 10 })).rejects.toThrow("its files have more than 5 bytes")
    await expect(unpack(path, { maxBytes: 50, maxEntries: 1 })).rejects.toThrow("it has more than 1 entries")
    expect(readdirSync(at("cache"))).toEqual([])
  })

  it("that is damaged or no archive is refused", async () => {
    const path = archive({ path: "a", text: "x".repeat(100_000) })
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.subarray(0, bytes.length / 2))
    await expect(unpack(path)).rejects.toThrow("cannot unpack the Python environment")
    writeFileSync(path, "text")
    await expect(unpack(path)).rejects.toThrow("incorrect header check")
    writeFileSync(path, gzipSync(Buffer.alloc(512, 1)))
    await expect(unpack(path)).rejects.toThrow("it is not a tar archive, or it is damaged")
    expect(readdirSync(at("cache"))).toEqual([])
  })
})
