/**
 * Unpacks environments of conda-pack: each archive once, by its path and time of modification, into a cache folder of
 * this user. A folder appears there complete or not at all, so that servers may share it.
 *
 *   <cache>/nereid/python/<digest of path>-<digest of time and size>/bin/python3 …
 */
import { Data, Effect } from "effect"
import { createHash, randomUUID } from "node:crypto"
import { createReadStream } from "node:fs"
import { chmod, link, lstat, mkdir, open, readdir, rename, rm, stat, symlink } from "node:fs/promises"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream"
import { createGunzip } from "node:zlib"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import * as TarReader from "./TarReader.ts"

/** Why an archive cannot be unpacked. */
export class ArchiveProblem extends Data.TaggedError("ArchiveProblem")<{ readonly message: string }> {}

export interface ArchiveLimits {
  /** Bytes of all files. */
  readonly maxBytes: number
  readonly maxEntries: number
}

const defaultLimits: ArchiveLimits = { maxBytes: 64 * 2 ** 30, maxEntries: 1_000_000 }

const maxPathLength = 4096

/** Archives that are being unpacked, by their folders: models share one. */
const unpacking = new Map<string, Promise<string>>()

/** The folder of an archive's contents. `archive` is a canonical path. */
export const unpack = (
  archive: string,
  cache: string = defaultCache(),
  limits: ArchiveLimits = defaultLimits,
): Effect.Effect<string, ArchiveProblem> =>
  Effect.tryPromise({
    try: async () => {
      const { mtimeMs, size } = await stat(archive)
      const path = digest(archive)
      const folder = join(cache, `${path}-${digest(`${mtimeMs} ${size}`)}`)
      const running = unpacking.get(folder) ?? unpackOnce(archive, cache, folder, limits)
      unpacking.set(folder, running)
      try {
        const unpacked = await running
        await removeOthers(cache, path, unpacked)
        return unpacked
      } finally {
        unpacking.delete(folder)
      }
    },
    catch: (error) =>
      new ArchiveProblem({ message: `cannot unpack the Python environment ${archive}: ${errorMessage(error)}` }),
  })

const defaultCache = (): string => join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "nereid", "python")

const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16)

const unpackOnce = async (archive: string, cache: string, folder: string, limits: ArchiveLimits): Promise<string> => {
  await mkdir(cache, { recursive: true, mode: 0o700 })
  if (await isFolder(folder)) return folder
  const temporary = join(cache, `.${randomUUID()}`)
  await mkdir(temporary, { mode: 0o700 })
  try {
    await write(archive, temporary, limits)
    await rename(temporary, folder)
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    // Another process was faster.
    if (!(await isFolder(folder))) throw error
  }
  return folder
}

const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await lstat(path)).isDirectory()
  } catch {
    return false
  }
}

/** Removes the contents of the same archive as it was before. */
const removeOthers = async (cache: string, path: string, current: string): Promise<void> => {
  for (const name of await readdir(cache)) {
    const other = join(cache, name)
    if (name.startsWith(`${path}-`) && other !== current) await rm(other, { recursive: true, force: true })
  }
}

const write = async (archive: string, root: string, { maxBytes, maxEntries }: ArchiveLimits): Promise<void> => {
  const unzipped = createGunzip()
  // Errors of the file arrive at the end of the chain, where they are read.
  pipeline(createReadStream(archive), unzipped, () => {})
  const links = new Set<string>()
  let bytes = 0
  let count = 0
  for await (const entry of TarReader.entries(unzipped)) {
    count += 1
    bytes += entry.size
    if (count > maxEntries) throw new Error(`it has more than ${maxEntries} entries`)
    if (bytes > maxBytes) throw new Error(`its files have more than ${maxBytes} bytes`)
    const path = checkedPath(entry.path)
    if (path === "") continue
    refuseThroughLinks(path, links)
    const to = join(root, path)
    if (entry.type === "folder") {
      await mkdir(to, { recursive: true, mode: 0o755 })
      continue
    }
    await mkdir(dirname(to), { recursive: true })
    // A later entry of the same path replaces the earlier one, and does not write through it.
    await rm(to, { force: true })
    links.delete(path)
    if (entry.type === "symlink") {
      await symlink(entry.target, to)
      links.add(path)
    } else if (entry.type === "hardlink") {
      const target = checkedPath(entry.target)
      refuseThroughLinks(target, links)
      await link(join(root, target), to)
      if (links.has(target)) links.add(path)
    } else await writeFile(to, entry)
  }
}

const writeFile = async (to: string, { contents, mode }: TarReader.TarEntry): Promise<void> => {
  // "wx" does not follow links.
  const file = await open(to, "wx", 0o600)
  try {
    for await (const chunk of contents) await file.writeFile(chunk)
  } finally {
    await file.close()
  }
  await chmod(to, mode | 0o600)
}

/** A path below the root, without "." and empty parts. */
const checkedPath = (path: string): string => {
  if (path.length > maxPathLength) throw new Error(`it has a path of ${path.length} characters`)
  if (path.startsWith("/")) throw new Error(`Path is absolute: ${path}`)
  const parts = path.split("/").filter((part) => part !== "" && part !== ".")
  if (parts.includes("..")) throw new Error(`Path contains '..': ${path}`)
  if (path.includes("\0")) throw new Error("it has a path with a zero byte")
  return parts.join("/")
}

/** Refuses a path whose folders the archive itself has made links. */
const refuseThroughLinks = (path: string, links: ReadonlySet<string>): void => {
  for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
    if (links.has(path.slice(0, end))) throw new Error(`it would write through a symbolic link: ${path}`)
  }
}
