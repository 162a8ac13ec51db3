/**
 * Directories of models, made of links to objects of the cache. Each process has its own folder of them, and touches it
 * from time to time: a folder that nobody touches is what a killed process has left.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, Schedule, type Scope } from "effect"
import { copyFile, link, mkdir, mkdtemp, readdir, rm, stat, utimes } from "node:fs/promises"
import { dirname, join } from "node:path"
import { StoreProblem } from "../http/StoreProblem.ts"
import type { ObjectCache } from "./ObjectCache.ts"

/** Milliseconds without a touch after which a folder is removed. */
const maxAge = 3600_000

/** Code of the problem that an object is not in the cache any more. */
export const evicted = "Evicted"

export interface CacheViews {
  /** Makes a directory with these objects at their paths, and these folders. It exists until the scope closes. */
  readonly make: (
    name: string,
    files: ReadonlyArray<{ readonly path: string; readonly id: string }>,
    folders: ReadonlyArray<string>,
  ) => Effect.Effect<string, StoreProblem, Scope.Scope>
}

export const open = Effect.fnUntraced(function* (
  cache: ObjectCache,
): Effect.fn.Return<CacheViews, StoreProblem, Scope.Scope> {
  const parent = join(cache.directory, "views")
  yield* failing(() => removeAbandoned(parent))
  const root = yield* Effect.acquireRelease(
    failing(() => mkdtemp(join(parent, "nereid-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }).catch(() => undefined)),
  )
  yield* Effect.promise(() => utimes(root, new Date(), new Date()).catch(() => undefined)).pipe(
    Effect.schedule(Schedule.spaced("5 minutes")),
    Effect.forkScoped,
  )
  let count = 0
  const make: CacheViews["make"] = (name, files, folders) =>
    Effect.gen(function* () {
      // The number first: the name of a model may be as long as a file name can be.
      const path = join(root, String(count++), name)
      yield* Effect.acquireRelease(
        failing(() => mkdir(path, { recursive: true })),
        () => Effect.promise(() => rm(dirname(path), { recursive: true, force: true }).catch(() => undefined)),
      )
      yield* failing(async () => {
        for (const folder of folders) await mkdir(join(path, folder), { recursive: true })
        for (const { id, path: file } of files) {
          const target = join(path, file)
          await mkdir(dirname(target), { recursive: true })
          await place(cache.pathOf(id), target)
        }
      })
      return path
    })
  return { make }
})

/** Links a file, or copies it where the file system has no links. */
const place = (source: string, target: string): Promise<void> =>
  link(source, target).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") throw error
    return copyFile(source, target)
  })

const removeAbandoned = async (parent: string): Promise<void> => {
  for (const name of await readdir(parent)) {
    const path = join(parent, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && Date.now() - found.mtimeMs > maxAge) await rm(path, { recursive: true, force: true })
  }
}

const failing = <A>(run: () => Promise<A>): Effect.Effect<A, StoreProblem> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => {
      const isGone = error instanceof Error && "code" in error && error.code === "ENOENT"
      return new StoreProblem({ kind: "failed", code: isGone ? evicted : "CacheFailed", message: errorMessage(error) })
    },
  })
