/** Downloads objects of a store as the cache does: in ranges of 1000 bytes, with their checksums verified. */
import { Effect, Semaphore } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { repository } from "../../../../../test/fixtures/repository.ts"
import { download } from "../cache/Download.ts"
import type { ObjectStore } from "./ObjectStore.ts"

/** All files of a store, by their keys. */
export const contentsOf = Effect.fnUntraced(function* (store: ObjectStore) {
  const { path: folder } = yield* repository
  const requests = Semaphore.makeUnsafe(4)
  const found = new Map<string, string>()
  for (const [index, object] of (yield* store.list).entries()) {
    if (object.key.endsWith("/")) continue
    const path = join(folder, String(index))
    yield* download({ store, object, path, rangeBytes: 1000, requests, onBytes: () => undefined })
    found.set(object.key, readFileSync(path, "utf8"))
  }
  return found
})
