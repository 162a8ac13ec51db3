/** The last listing of a repository on disk, for a start without its store. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { ObjectCache } from "../storage/cache/ObjectCache.ts"
import * as JsonReply from "../storage/http/JsonReply.ts"
import type { Checksum, ChecksumAlgorithm } from "../storage/store/Checksum.ts"
import type { StoredObject } from "../storage/store/ObjectStore.ts"

interface SavedListing {
  /** Milliseconds since 1970. */
  readonly listedAt: number
  readonly objects: ReadonlyArray<StoredObject>
}

/** Of the file, which another version of this program may have written. */
const format = 1

const pathOf = ({ directory }: ObjectCache, place: string): string =>
  join(directory, "listings", `${createHash("sha256").update(place).digest("hex").slice(0, 40)}.json`)

/** Writes a listing. A failure only costs the start without the store. */
export const write = (cache: ObjectCache, place: string, listing: SavedListing): Effect.Effect<void> =>
  Effect.promise(async () => {
    const path = pathOf(cache, place)
    const draft = `${path}.${process.pid}`
    await writeFile(draft, JSON.stringify({ format, place, ...listing }), { mode: 0o600 })
    await rename(draft, path)
  }).pipe(Effect.catchDefect(() => Effect.logWarning(`Cannot save the listing of ${place}`)))

/** Undefined without a listing that can be read. */
export const read = (cache: ObjectCache, place: string): Effect.Effect<SavedListing | undefined> =>
  Effect.promise(async () => {
    const saved = JsonReply.parse(await readFile(pathOf(cache, place), "utf8").catch(() => ""))
    const listedAt = JsonReply.number(saved, "listedAt")
    if (JsonReply.number(saved, "format") !== format || JsonReply.text(saved, "place") !== place) return undefined
    const items = JsonReply.items(JsonReply.field(saved, "objects"))
    const objects = items.flatMap((item) => objectOf(item) ?? [])
    return listedAt === undefined || objects.length !== items.length ? undefined : { listedAt, objects }
  })

const objectOf = (item: unknown): StoredObject | undefined => {
  const [key, size, version] = ["key", "size", "version"].map((name) => JsonReply.field(item, name))
  if (typeof key !== "string" || typeof size !== "number" || typeof version !== "string") return undefined
  const checksum = checksumOf(JsonReply.field(item, "checksum"))
  return { key, size, version, ...(checksum === undefined ? {} : { checksum }) }
}

const algorithms: ReadonlyArray<ChecksumAlgorithm> = ["md5", "sha1", "sha256", "crc32", "crc32c", "git"]

const checksumOf = (item: unknown): Checksum | undefined => {
  const algorithm = algorithms.find((one) => one === JsonReply.text(item, "algorithm"))
  const value = JsonReply.text(item, "value")
  return algorithm === undefined || value === undefined ? undefined : { algorithm, value }
}
