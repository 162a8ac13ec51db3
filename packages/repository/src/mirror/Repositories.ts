/**
 * The repositories that a server is given: directories on disk, and mirrors of object storage, whose code is imported
 * with the first of them.
 */
import { Effect, type Scope } from "effect"
import { LoadFailure } from "../directory/LoadFailure.ts"
import * as LocalDirectory from "../directory/LocalDirectory.ts"
import type { RepositoryDirectory } from "../directory/RepositoryDirectory.ts"
import * as StorageUrl from "../storage/store/StorageUrl.ts"
import type { Mirrors } from "./Mirrors.ts"
import type { StorageOptions } from "./StorageOptions.ts"

/** Opens them; a repository that is given twice counts once. */
export const open = Effect.fnUntraced(function* (
  directories: ReadonlyArray<string>,
  singleModel: string | undefined,
  options: StorageOptions = {},
): Effect.fn.Return<ReadonlyArray<RepositoryDirectory>, LoadFailure, Scope.Scope> {
  const found = new Map<string, RepositoryDirectory>()
  let mirrors: Mirrors | undefined
  for (const directory of directories) {
    if (!StorageUrl.isUrl(directory)) {
      const local = LocalDirectory.make(directory, singleModel)
      found.set(local.path, local)
      continue
    }
    const url = yield* Effect.mapError(
      Effect.fromResult(StorageUrl.parse(directory)),
      (message) => new LoadFailure({ message }),
    )
    if (found.has(url.shown)) continue
    mirrors ??= new (yield* Effect.promise(() => import("./Mirrors.ts"))).Mirrors(options)
    found.set(url.shown, yield* mirrors.open(url, singleModel))
  }
  return [...found.values()]
})
