/** Google Cloud Storage, against a server with its JSON interface that checks tokens and generations. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import * as LocalServer from "../http/LocalServer.fixture.ts"
import { Crc32c } from "./Crc32c.ts"
import { contentsOf } from "./Downloads.fixture.ts"
import { GoogleStore } from "./GoogleStore.ts"

const large = "0123456789".repeat(250)

interface Blob {
  readonly content: string
  readonly generation: string
  /** Checksums that the listing has of it. */
  readonly sums: Readonly<Record<string, string>>
}

const md5 = (content: string) => ({ md5Hash: createHash("md5").update(content).digest("base64") })

const crc32c = (content: string) => {
  const sum = new Crc32c()
  sum.update(Buffer.from(content))
  return { crc32c: Buffer.from(sum.hex(), "hex").toString("base64") }
}

/** A bucket with pages of one object. */
const bucket = Effect.fnUntraced(function* (token?: string) {
  const blobs = new Map<string, Blob>()
  const put = (name: string, content: string, sums: Blob["sums"] = md5(content)) =>
    blobs.set(name, { content, sums, generation: String(1700000000000000 + blobs.size) })
  const refused = (status: number, reason: string) =>
    LocalServer.json({ error: { code: status, message: "it is so", errors: [{ reason }] } }, status)
  const server = yield* LocalServer.make((request) => {
    const { path, query, headers } = request
    if (headers.authorization !== (token === undefined ? undefined : `Bearer ${token}`)) {
      return refused(401, "authError")
    }
    if (path === "/storage/v1/b/bucket/o") {
      const names = [...blobs.keys()].filter((name) => name.startsWith(query.get("prefix") ?? "")).toSorted()
      const index = Number(query.get("pageToken") ?? 0)
      const items = names.slice(index, index + 1).map((name) => {
        const { content, generation, sums } = blobs.get(name) ?? { content: "", generation: "", sums: {} }
        return { name, size: String(content.length), generation, ...sums }
      })
      return LocalServer.json({ items, ...(index + 1 < names.length ? { nextPageToken: String(index + 1) } : {}) })
    }
    const blob = blobs.get(path.replace("/storage/v1/b/bucket/o/", ""))
    if (blob === undefined) return refused(404, "notFound")
    expect(query.get("alt")).toBe("media")
    // A name is one segment of the path.
    expect(request.target.split("?")[0]?.split("/")).toHaveLength(7)
    if (query.get("ifGenerationMatch") !== blob.generation) return refused(412, "conditionNotMet")
    return LocalServer.contents(request, Buffer.from(blob.content), { "x-goog-generation": blob.generation })
  })
  const environment = { STORAGE_EMULATOR_HOST: server.origin }
  const open = (more: Readonly<Record<string, string>> = {}) =>
    new GoogleStore({ bucket: "bucket", path: "models", environment: Effect.succeed({ ...environment, ...more }) })
  return { put, open, server }
})

describe("a bucket of Google", () => {
  it.live("is listed in pages, and its objects are read in ranges", () =>
    Effect.gen(function* () {
      const { put, open, server } = yield* bucket()
      put("models/m/config.pbtxt", "name: 'm'")
      put("models/m #é+%/1/model.onnx", large)
      put("models/composed", large, crc32c(large))
      put("other/x", "not of this repository")
      expect([...(yield* contentsOf(open()))]).toEqual([
        ["composed", large],
        ["m #é+%/1/model.onnx", large],
        ["m/config.pbtxt", "name: 'm'"],
      ])
      const ranges = server.requests.filter(({ path }) => path.endsWith("composed")).map(({ headers }) => headers.range)
      expect(ranges.toSorted()).toEqual(["bytes=0-999", "bytes=1000-1999", "bytes=2000-2499"])
    }),
  )

  it.live.each([md5, crc32c])("has contents that do not fit their checksum: refused", (sumOf) =>
    Effect.gen(function* () {
      const { put, open } = yield* bucket()
      put("models/m/1/model.onnx", "wrong", sumOf("right"))
      expect((yield* Effect.flip(contentsOf(open()))).code).toBe("ChecksumMismatch")
    }),
  )

  it.live("has another object than the listing: changed, or missing", () =>
    Effect.gen(function* () {
      const { put, open } = yield* bucket()
      put("models/m", "old")
      const store = open()
      const [object] = yield* store.list
      if (object === undefined) throw new Error("the listing is empty")
      put("models/m", "new")
      const problemOf = (one: typeof object) => Effect.flip(store.get(one, undefined, async () => undefined))
      expect(yield* problemOf(object)).toMatchObject({ kind: "changed", code: "conditionNotMet", message: "it is so" })
      expect(yield* problemOf({ ...object, key: "gone" })).toMatchObject({ kind: "missing", code: "notFound" })
    }),
  )

  it.live("refuses requests without credentials", () =>
    Effect.gen(function* () {
      const { open } = yield* bucket("a-token")
      const problem = yield* Effect.flip(open().list)
      expect(problem).toMatchObject({ kind: "denied", code: "authError", message: "it is so" })
    }),
  )
})

describe("a listing without an end", () => {
  const listing = (items: ReadonlyArray<unknown>) =>
    Effect.gen(function* () {
      const server = yield* LocalServer.make(() => LocalServer.json({ items, nextPageToken: "more" }))
      const environment = Effect.succeed({ STORAGE_EMULATOR_HOST: server.origin })
      return yield* Effect.flip(new GoogleStore({ bucket: "bucket", path: "", environment }).list)
    })

  it.live("fails when it has too many objects", () =>
    Effect.gen(function* () {
      const items = Array.from({ length: 20_000 }, (_, index) => ({ name: String(index), size: "1", generation: "1" }))
      const { code, message } = yield* listing(items)
      expect(code).toBe("TooManyObjects")
      expect(message).toBe("there are more than 100000 objects, which is the limit of a repository")
    }),
  )

  it.live("fails when it has too many pages, be they empty", () =>
    Effect.gen(function* () {
      const { message } = yield* listing([])
      expect(message).toBe("there are more than 1000 pages of objects, which is the limit of a repository")
    }),
  )
})
