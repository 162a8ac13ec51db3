/**
 * Watches files for changes of their contents. It watches their directories, because many editors replace a file
 * instead of writing to it, and a missing file may be created.
 */
import { createHash } from "node:crypto"
import { type FSWatcher, readFileSync, statSync, watch } from "node:fs"
import { basename, dirname, join } from "node:path"

/** Milliseconds without an event before the files are compared: a save is several events. */
const quiet = 100

/** Files that are watched; a larger project is watched in part. */
const maxFiles = 10_000

export class ChangedFiles {
  /** Digests of the contents, by path. */
  readonly #digests = new Map<string, string>()
  readonly #directories = new Map<string, FSWatcher>()
  readonly #touched = new Set<string>()
  readonly #onChange: (paths: ReadonlyArray<string>) => void
  readonly #onProblem: (message: string) => void
  #timer: NodeJS.Timeout | undefined

  constructor(onChange: (paths: ReadonlyArray<string>) => void, onProblem: (message: string) => void) {
    this.#onChange = onChange
    this.#onProblem = onProblem
  }

  /** Watches one more file. It has changed already if that was after `since`, in milliseconds since the epoch. */
  add(path: string, since: number): void {
    if (this.#digests.has(path) || this.#digests.size >= maxFiles) return
    this.#watchDirectory(dirname(path))
    const modified = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
    const isNewer = modified > since && modified <= Date.now()
    this.#digests.set(path, isNewer ? "of an earlier version" : digest(path))
    if (isNewer) this.#touch(path)
  }

  /** Watches these files and no others. */
  keepOnly(paths: ReadonlySet<string>): void {
    for (const path of this.#digests.keys()) if (!paths.has(path)) this.#digests.delete(path)
    const needed = new Set([...this.#digests.keys()].map(dirname))
    for (const [directory, watcher] of this.#directories) {
      if (needed.has(directory)) continue
      watcher.close()
      this.#directories.delete(directory)
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const watcher of this.#directories.values()) watcher.close()
    this.#directories.clear()
  }

  #watchDirectory(directory: string): void {
    if (this.#directories.has(directory)) return
    try {
      const watcher = watch(directory, (_, name) => {
        const changed = name === null ? [...this.#digests.keys()] : [join(directory, name)]
        for (const path of changed) if (this.#digests.has(path)) this.#touch(path)
      })
      watcher.on("error", () => {
        watcher.close()
        this.#directories.delete(directory)
      })
      this.#directories.set(directory, watcher)
    } catch (error) {
      const { code = String(error) } = error as NodeJS.ErrnoException
      if (code !== "ENOENT") this.#onProblem(`cannot watch ${basename(directory)}: ${code}`)
    }
  }

  #touch(path: string): void {
    this.#touched.add(path)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#compare(), quiet)
  }

  #compare(): void {
    const changed = [...this.#touched].filter((path) => {
      const before = this.#digests.get(path)
      const now = digest(path)
      this.#digests.set(path, now)
      return before !== undefined && before !== now
    })
    this.#touched.clear()
    if (changed.length > 0) this.#onChange(changed)
  }
}

/** Returns a digest of the contents; empty for a file that cannot be read. */
const digest = (path: string): string => {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("base64")
  } catch {
    return ""
  }
}
