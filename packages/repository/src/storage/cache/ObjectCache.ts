/**
 * Objects on disk, by what they are: the store, the key and its version. Objects that are in use stay; the others are
 * evicted, the least recently used first, when their bytes exceed the limit. Several processes may share a directory.
 *
 *   <directory>/objects/<id>          complete objects; the time of their last use is their access time
 *              /partial/<id>          downloads (PartialFile.ts)
 *              /listings/<id>.json    the last listing of each repository
 *              /views/<random>/       directories of models (CacheViews.ts)
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Clock, Effect, type Scope, Semaphore } from "effect"
import { createHash } from "node:crypto"
import { chmod, mkdir, readdir, rename, rm, stat, statfs, utimes } from "node:fs/promises"
import { join } from "node:path"
import { StoreProblem } from "../http/StoreProblem.ts"
import type { ObjectStore, StoredObject } from "../store/ObjectStore.ts"
import { download } from "./Download.ts"
import * as PartialFile from "./PartialFile.ts"

/** An object, and where the cache has it. */
export interface CachedObject {
  readonly id: string
  readonly object: StoredObject
}

/** The downloads of a model. */
export interface Transfer {
  /** Bytes that have to be downloaded, before any arrives. */
  readonly begin: (bytes: number, files: number) => void
  readonly onBytes: (count: number) => void
}

/** Requests for contents at a time, of all repositories of a cache. */
const maxRequests = 8

/** Milliseconds after which a download that nobody has continued may be evicted. */
const minPartialAge = 10 * 60_000

interface DiskEntry {
  readonly path: string
  readonly id: string
  readonly size: number
  readonly usedAt: number
}

export class ObjectCache {
  readonly directory: string
  readonly maxBytes: number
  readonly #rangeBytes: number
  readonly #requests = Semaphore.makeUnsafe(maxRequests)
  readonly #admission = Semaphore.makeUnsafe(1)
  /** Holders of each object that is in use. */
  readonly #held = new Map<string, number>()
  /** Bytes of admitted downloads that are not complete. */
  #reserved = 0

  constructor(directory: string, maxBytes: number, rangeBytes: number) {
    this.directory = directory
    this.maxBytes = maxBytes
    this.#rangeBytes = rangeBytes
  }

  pathOf(id: string): string {
    return join(this.directory, "objects", id)
  }

  /**
   * Makes sure that the cache has these objects, as long as the scope is open. Downloads those that are missing;
   * without any, the store is not asked.
   */
  hold(
    store: ObjectStore,
    objects: ReadonlyArray<CachedObject>,
    transfer: Transfer,
  ): Effect.Effect<void, StoreProblem, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => this.#count(objects, 1)),
        () => Effect.sync(() => this.#count(objects, -1)),
      )
      const present = yield* Effect.forEach(objects, (one) => this.#use(one), { concurrency: 16 })
      const missing = objects.filter((_, index) => present[index] === false)
      if (missing.length === 0) return
      const bytes = missing.reduce((sum, { object }) => sum + object.size, 0)
      yield* Effect.scoped(
        Effect.gen({ self: this }, function* () {
          yield* this.#admit(bytes)
          transfer.begin(bytes, missing.length)
          yield* Effect.forEach(missing, (one) => this.#fetch(store, one, transfer), {
            concurrency: maxRequests,
            discard: true,
          })
        }),
      )
    })
  }

  #count(objects: ReadonlyArray<CachedObject>, change: 1 | -1): void {
    for (const { id } of objects) {
      const holders = (this.#held.get(id) ?? 0) + change
      if (holders === 0) this.#held.delete(id)
      else this.#held.set(id, holders)
    }
  }

  /** Whether the object is there, unchanged. Records its use. */
  #use({ id, object }: CachedObject): Effect.Effect<boolean> {
    return Effect.promise(async () => {
      const path = this.pathOf(id)
      const found = await stat(path).catch(() => undefined)
      if (found === undefined) return false
      // Somebody has written to the file, perhaps a model in Python.
      if (found.size !== object.size || Math.abs(found.mtimeMs - markOf(id)) > 2_000) {
        await rm(path, { force: true })
        return false
      }
      return utimes(path, new Date(), new Date(markOf(id))).then(
        () => true,
        () => false,
      )
    })
  }

  /** Downloads an object; once more if its bytes are wrong. */
  #fetch(store: ObjectStore, { id, object }: CachedObject, { onBytes }: Transfer): Effect.Effect<void, StoreProblem> {
    const path = join(this.directory, "partial", id)
    const fetch = download({ store, object, path, rangeBytes: this.#rangeBytes, requests: this.#requests, onBytes })
    return fetch.pipe(
      Effect.catchIf(
        ({ code }) => code === "ChecksumMismatch",
        () => fetch,
      ),
      Effect.andThen(
        Effect.tryPromise({
          try: () => this.#place(path, id),
          catch: (error) => writeFailed(this.directory, error),
        }),
      ),
      Effect.mapError((problem) => new StoreProblem({ ...problem, message: `${problem.message} (${object.key})` })),
    )
  }

  async #place(path: string, id: string): Promise<void> {
    const target = this.pathOf(id)
    await chmod(path, 0o444)
    await utimes(path, new Date(), new Date(markOf(id)))
    await rename(path, target).catch(async (error: unknown) => {
      // Another process has downloaded it, too.
      if ((await stat(target).catch(() => undefined)) === undefined) throw error
      await utimes(target, new Date(), new Date(markOf(id)))
    })
    await rm(`${path}.ranges`, { force: true })
  }

  /** Makes room for bytes, which count until the scope closes. */
  #admit(bytes: number): Effect.Effect<void, StoreProblem, Scope.Scope> {
    const admit = this.#admission.withPermit(
      Effect.gen({ self: this }, function* () {
        const now = yield* Clock.currentTimeMillis
        const problem = yield* Effect.tryPromise({
          try: () => this.#makeRoom(bytes, now),
          catch: (error) => writeFailed(this.directory, error),
        })
        if (problem !== undefined) {
          return yield* new StoreProblem({ kind: "failed", code: "CacheFull", message: problem })
        }
        this.#reserved += bytes
      }),
    )
    return Effect.acquireRelease(admit, () => Effect.sync(() => void (this.#reserved -= bytes)))
  }

  /** Evicts objects until there is room; returns why there cannot be. */
  async #makeRoom(bytes: number, now: number): Promise<string | undefined> {
    const partial = (await this.#entries("partial")).filter(({ usedAt }) => now - usedAt > minPartialAge)
    const entries = [...partial, ...(await this.#entries("objects"))]
    let total = this.#reserved + bytes + entries.reduce((sum, { size }) => sum + size, 0)
    const unused = entries.filter(({ id }) => !this.#held.has(id)).toSorted((a, b) => a.usedAt - b.usedAt)
    const removable = unused.reduce((sum, { size }) => sum + size, 0)
    if (total - removable > this.maxBytes) {
      const used = total - removable - bytes
      return `${bytes} bytes are needed beside ${used} bytes in use, the limit of the cache ${this.directory} is ${this.maxBytes} bytes`
    }
    for (const { path, size } of unused) {
      if (total <= this.maxBytes) break
      await PartialFile.remove(path)
      total -= size
    }
    const { bavail, bsize } = await statfs(this.directory)
    return bavail * bsize < bytes
      ? `${bytes} bytes are needed, the file system of the cache ${this.directory} has ${bavail * bsize} bytes left`
      : undefined
  }

  async #entries(folder: "objects" | "partial"): Promise<ReadonlyArray<DiskEntry>> {
    const found: Array<DiskEntry> = []
    for (const id of await readdir(join(this.directory, folder))) {
      const path = join(this.directory, folder, id)
      // It may have been evicted by another process.
      const file = await stat(path).catch(() => undefined)
      if (file?.isFile() !== true || id.includes(".")) continue
      const usedAt = folder === "objects" ? file.atimeMs : file.mtimeMs
      found.push({ path, id, size: file.size, usedAt })
    }
    return found
  }
}

/** Opens a cache in a directory, which is made if it does not exist. */
export const open = (
  directory: string,
  maxBytes: number,
  rangeBytes = PartialFile.defaultRangeBytes,
): Effect.Effect<ObjectCache, StoreProblem> =>
  Effect.tryPromise({
    try: async () => {
      for (const folder of ["objects", "partial", "listings", "views"]) {
        await mkdir(join(directory, folder), { recursive: true, mode: 0o700 })
      }
      return new ObjectCache(directory, maxBytes, rangeBytes)
    },
    catch: (error) => writeFailed(directory, error),
  })

/** Name of an object in the cache. `place`: its store and repository. */
export const idOf = (place: string, { key, version, size, checksum }: StoredObject): string => {
  // Contents that are known by a strong digest are the same in every repository.
  const identity = checksum?.algorithm === "sha256" ? ["sha256", checksum.value, size] : [place, key, version, size]
  return createHash("sha256").update(JSON.stringify(identity)).digest("hex").slice(0, 40)
}

/** The modification time of an object in the cache, in milliseconds. Any other shows that the file was written to. */
const markOf = (id: string): number => 946_684_800_000 + parseInt(id.slice(0, 7), 16) * 1000

const writeFailed = (directory: string, error: unknown) =>
  new StoreProblem({
    kind: "failed",
    code: "CacheFailed",
    message: `cannot use the cache ${directory}: ${errorMessage(error)}`,
  })
