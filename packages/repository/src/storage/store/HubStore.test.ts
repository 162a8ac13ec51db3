/** Hugging Face, against servers with its interface: trees of commits, and redirects to the storage of large files. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import * as LocalServer from "../http/LocalServer.fixture.ts"
import { contentsOf } from "./Downloads.fixture.ts"
import { HubStore } from "./HubStore.ts"

const large = "0123456789".repeat(250)

const gitId = (content: string) => createHash("sha1").update(`blob ${content.length}\0${content}`).digest("hex")
const sha256 = (content: string) => createHash("sha256").update(content).digest("hex")

const commits = { first: "1".repeat(40), second: "2".repeat(40) }

/** A model with two commits. Files above 1000 bytes are large: another server has them. */
const hub = Effect.gen(function* () {
  const state = { head: commits.first, sum: sha256 }
  const files = new Map([
    [
      commits.first,
      new Map([
        ["onnx/m #é/config.pbtxt", "name: 'm'"],
        ["onnx/m #é/1/model.onnx", large],
        ["README.md", "#"],
      ]),
    ],
    [commits.second, new Map([["onnx/m #é/config.pbtxt", "name: 'n'"]])],
  ])
  const storage = yield* LocalServer.make((request) => {
    // The token is for the hub alone.
    if (request.headers.authorization !== undefined) return { status: 400 }
    return request.query.get("signature") === "a+b"
      ? LocalServer.contents(request, Buffer.from(large))
      : { status: 403 }
  })
  const base = "/mirror"
  const server = yield* LocalServer.make((request) => {
    const { path, query, headers, target } = request
    if (headers.authorization !== "Bearer hf_token") {
      return { ...LocalServer.json({ error: "it is gated" }, 401), headers: { "x-error-code": "GatedRepo" } }
    }
    if (target === `${base}/api/models/org/model/revision/refs%2Fpr%2F1`) return LocalServer.json({ sha: state.head })
    const [, commit = "", file = ""] = /^\/mirror\/org\/model\/resolve\/(\w+)\/(.*)$/.exec(path) ?? []
    const content = files.get(commit)?.get(file)
    if (content === large) {
      const location = `${storage.origin}/${sha256(content)}?signature=a%2Bb`
      return { status: 302, headers: { location, "x-linked-etag": `"${state.sum(content)}"` } }
    }
    // Since 2025, small files are redirected on the same server.
    if (content !== undefined && !query.has("cached")) {
      return { status: 307, headers: { location: `${target}?cached` } }
    }
    if (content !== undefined) return LocalServer.contents(request, Buffer.from(content))
    const [, tree = ""] = /^\/mirror\/api\/models\/org\/model\/tree\/(\w+)\/onnx$/.exec(path) ?? []
    const found = [...(files.get(tree) ?? [])].filter(([name]) => name.startsWith("onnx/"))
    if (found.length === 0 || query.get("recursive") !== "true") return LocalServer.json({ error: "not found" }, 404)
    const entries = found.map(([name, content]) => ({
      type: "file",
      path: name,
      size: content.length,
      oid: gitId(content),
      ...(content === large ? { oid: "0".repeat(40), lfs: { oid: state.sum(content), size: content.length } } : {}),
    }))
    const all = [{ type: "directory", path: "onnx/m #é", oid: "3".repeat(40), size: 0 }, ...entries]
    const index = Number(query.get("cursor") ?? 0)
    const link = `<http://${headers.host}${path}?recursive=true&cursor=${index + 1}>; rel="next"`
    const reply = LocalServer.json([all[index]])
    return index + 1 < all.length ? { ...reply, headers: { link } } : reply
  })
  const open = (environment: Readonly<Record<string, string>> = { HF_TOKEN: "hf_token" }) =>
    new HubStore({
      model: "org/model",
      revision: "refs/pr/1",
      path: "onnx",
      environment: { HF_ENDPOINT: `${server.origin}${base}/`, ...environment },
    })
  return { state, storage, server, open }
})

const read = (store: HubStore, object: Parameters<HubStore["get"]>[0] | undefined) =>
  object === undefined
    ? Effect.die("the listing is too short")
    : store.get(object, undefined, async ({ body }) => {
        const pieces: Array<Uint8Array> = []
        for await (const piece of body) pieces.push(piece)
        return Buffer.concat(pieces).toString()
      })

describe("a model of Hugging Face", () => {
  it.live("is listed in pages at a commit, and its large files are read in ranges elsewhere", () =>
    Effect.gen(function* () {
      const { storage, open } = yield* hub
      const store = open()
      expect((yield* store.list).map(({ key, version }) => [key, version])).toEqual([
        ["m #é/", "3".repeat(40)],
        ["m #é/config.pbtxt", gitId("name: 'm'")],
        ["m #é/1/model.onnx", sha256(large)],
      ])
      expect([...(yield* contentsOf(store))]).toEqual([
        ["m #é/config.pbtxt", "name: 'm'"],
        ["m #é/1/model.onnx", large],
      ])
      expect(storage.requests.map(({ headers }) => headers.range).toSorted()).toEqual([
        "bytes=0-999",
        "bytes=1000-1999",
        "bytes=2000-2499",
      ])
    }),
  )

  it.live("has no second listing as long as its commit stays", () =>
    Effect.gen(function* () {
      const { state, server, open } = yield* hub
      const store = open()
      const before = yield* store.list
      const { length } = server.requests
      expect(yield* store.list).toBe(before)
      expect(server.requests.length - length).toBe(1)
      state.head = commits.second
      expect((yield* store.list).map(({ key }) => key)).toEqual(["m #é/", "m #é/config.pbtxt"])
    }),
  )

  it.live("is read at the commit of its listing, also after another listing", () =>
    Effect.gen(function* () {
      const { state, open } = yield* hub
      const store = open()
      const [, object] = yield* store.list
      state.head = commits.second
      const [, other] = yield* store.list
      expect([yield* read(store, object), yield* read(store, other)]).toEqual(["name: 'm'", "name: 'n'"])
    }),
  )

  it.live("has other contents than its digest: refused", () =>
    Effect.gen(function* () {
      const { state, open } = yield* hub
      state.sum = () => sha256("something else")
      const store = open()
      const problem = yield* Effect.flip(contentsOf(store))
      expect(problem.code).toBe("ChecksumMismatch")
    }),
  )

  it.live("needs a token: denied, with the reason", () =>
    Effect.gen(function* () {
      const { open } = yield* hub
      const problem = yield* Effect.flip(open({}).list)
      expect(problem).toMatchObject({ kind: "denied", code: "GatedRepo", message: "it is gated" })
    }),
  )

  it.live("redirects for ever: fails", () =>
    Effect.gen(function* () {
      const server = yield* LocalServer.make(({ target }) => ({ status: 302, headers: { location: target } }))
      const environment = { HF_ENDPOINT: server.origin }
      const store = new HubStore({ model: "org/model", revision: "main", path: "", environment })
      const object = { key: "model.onnx", size: 1, version: "0" }
      expect((yield* Effect.flip(read(store, object))).code).toBe("Redirect")
      expect(server.requests.length).toBe(6)
    }),
  )
})
