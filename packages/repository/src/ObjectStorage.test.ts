/** Repositories in object storage, through a real socket: loads, changes, faults, and starts without the store. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger, Scope } from "effect"
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { plus, repository } from "../../../test/fixtures/repository.ts"
import { open } from "./Repository.fixture.ts"
import * as FakeS3 from "./storage/store/FakeS3.fixture.ts"

const secret = "a-secret-of-the-test"

const environment = { AWS_ACCESS_KEY_ID: "key", AWS_SECRET_ACCESS_KEY: secret, AWS_CONFIG_FILE: "/nowhere" }

type Limits = { readonly maxCacheBytes?: number; readonly rangeBytes?: number }

/** A store, and a function that opens the repository in it with one cache. */
const fixture = Effect.gen(function* () {
  const store = yield* FakeS3.make
  const { path: cacheDirectory } = yield* repository
  const messages: Array<string> = []
  const logger = Logger.make(({ message }) => void messages.push(String(message)))
  const serve = (control: "none" | "explicit" = "explicit", limits: Limits = {}) =>
    open({ path: store.url }, { control, load: [], storage: { cacheDirectory, environment, ...limits } })
  const files = (folder: string) => readdirSync(join(cacheDirectory, folder))
  return { store, serve, messages, cacheDirectory, files, log: Logger.layer([logger]) }
})

/** Runs something whose resources end with it. */
const ended = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const result = yield* Scope.provide(effect, scope)
    yield* Scope.close(scope, Exit.void)
    return result
  })

describe("a load", () => {
  it.live("downloads the versions of the policy alone, with one listing of several pages", () =>
    Effect.gen(function* () {
      const { store, serve } = yield* fixture
      for (const version of [1, 2, 3]) store.put(`m/${version}/model.onnx`, plus(version))
      store.put("m/config.pbtxt", "version_policy { specific { versions: [2] } }")
      store.pageSize = 2
      const { call } = yield* serve("none")
      expect(yield* call("m")).toBe(2)
      expect(store.gets.map((path) => path.split("/models/")[1])).toEqual(["m/config.pbtxt", "m/2/model.onnx"])
      expect(store.requests.length - store.gets.length).toBe(2)
    }),
  )

  it.live("loads a new version, and leaves the others alone", () =>
    Effect.gen(function* () {
      const { store, serve } = yield* fixture
      store.put("m/1/model.onnx", plus(1))
      store.put("m/config.pbtxt", "version_policy { all {} }")
      const { call, load, unload, registry } = yield* serve()
      yield* load("m")
      const before = registry.get("m", "1")
      store.put("m/2/model.onnx", plus(2))
      yield* load("m")
      expect([yield* call("m", "1"), yield* call("m", "2")]).toEqual([1, 2])
      expect(registry.get("m", "1")).toEqual(before)
      store.put("m/1/model.onnx", plus(5))
      yield* load("m")
      expect([yield* call("m", "1"), yield* call("m", "2")]).toEqual([5, 2])
      yield* unload("m")
      expect(Exit.isFailure(yield* Effect.exit(call("m")))).toBe(true)
    }),
  )

  it.live("survives errors, connections that end too early, and wrong bytes once", () =>
    Effect.gen(function* () {
      const { store, serve } = yield* fixture
      store.put("m/1/model.onnx", plus(7))
      let count = 0
      store.fault = (request, response) => {
        if (request.url?.includes("list-type") === true || request.method === "HEAD") return false
        count += 1
        if (count === 1) FakeS3.refuse(response, 503, "SlowDown")
        else if (count === 2) {
          response.writeHead(200, { "content-length": plus(7).length }).write(plus(7).subarray(0, 50))
          setTimeout(() => response.destroy(), 50)
        } else if (count === 3) {
          const rest = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1])
          expect(rest).toBe(50)
          const end = plus(7).length
          response
            .writeHead(206, { "content-range": `bytes ${rest}-${end - 1}/${end}` })
            .end(new Uint8Array(end - rest))
        } else return false
        return true
      }
      const { call, load } = yield* serve()
      yield* load("m")
      expect(yield* call("m")).toBe(7)
      expect(count).toBe(4)
    }),
  )

  it.live("reads a large object in ranges", () =>
    Effect.gen(function* () {
      const { store, serve } = yield* fixture
      store.put("m/1/model.onnx", plus(7))
      store.put("m/large.bin", new Uint8Array(2500).fill(3))
      const { call, load } = yield* serve("explicit", { rangeBytes: 1000 })
      yield* load("m")
      expect(yield* call("m")).toBe(7)
      const ranges = store.gets.filter((request) => request.includes("large.bin") && request.startsWith("GET"))
      expect(ranges.map((request) => request.split("bytes=")[1]).toSorted()).toEqual([
        "0-999",
        "1000-1999",
        "2000-2499",
      ])
    }),
  )

  it.live("reads four ranges of an object at a time", () =>
    Effect.gen(function* () {
      const { store, serve } = yield* fixture
      store.put("m/1/model.onnx", plus(7))
      store.put("m/large.bin", new Uint8Array(10_000))
      const held: Array<() => void> = []
      store.fault = (request, response) => {
        const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? []
        if (request.url?.includes("large.bin") !== true || start === undefined) return false
        held.push(() => {
          response.writeHead(206, { "content-range": `bytes ${start}-${end}/10000` })
          response.end(new Uint8Array(1000))
        })
        return true
      }
      const { load, call } = yield* serve("explicit", { rangeBytes: 1000 })
      const loading = yield* Effect.forkChild(load("m"), { startImmediately: true })
      const isAsked = (count: number) => Effect.promise(() => expect.poll(() => held.length).toBe(count))
      // A range that ends makes room for one more. A fifth would be here long before the next one is released.
      for (let released = 0; released < 6; released++) {
        yield* isAsked(4 + released)
        held[released]?.()
      }
      yield* isAsked(10)
      for (const release of held.slice(6)) release()
      yield* Fiber.join(loading)
      expect(yield* call("m")).toBe(7)
    }),
  )

  it.live("tells in the index how far its download is", () =>
    Effect.gen(function* () {
      const { store, serve } = yield* fixture
      store.put("m/1/model.onnx", plus(7))
      store.put("m/large.bin", new Uint8Array(4000))
      const waiting = Promise.withResolvers<void>()
      const asked = Promise.withResolvers<void>()
      store.fault = (request, response) => {
        if (request.url?.includes("large.bin") !== true || request.headers.range !== "bytes=3000-3999") return false
        response.writeHead(206, { "content-range": "bytes 3000-3999/4000", "content-length": 1000 })
        response.write(new Uint8Array(500))
        asked.resolve()
        void waiting.promise.then(() => response.end(new Uint8Array(500)))
        return true
      }
      const { load, index } = yield* serve("explicit", { rangeBytes: 1000 })
      expect(index()).toEqual([{ name: "m" }])
      const loading = yield* Effect.forkChild(load("m"), { startImmediately: true })
      yield* Effect.promise(() => asked.promise)
      const size = ((plus(7).length + 4000) / 1000).toFixed(1)
      const arrived = ((plus(7).length + 3500) / 1000).toFixed(1)
      const percent = Math.floor((100 * (plus(7).length + 3500)) / (plus(7).length + 4000))
      const reason = `downloaded ${arrived} KB of ${size} KB (${percent} %)`
      yield* Effect.promise(() => expect.poll(() => index()).toEqual([{ name: "m", state: "LOADING", reason }]))
      waiting.resolve()
      yield* Fiber.join(loading)
      expect(index()).toMatchObject([{ name: "m", version: "1", state: "READY" }])
    }),
  )

  it.live("begins again with another listing if an object changes while it is read", () =>
    Effect.gen(function* () {
      const { store, serve } = yield* fixture
      store.put("m/1/model.onnx", plus(1))
      store.put("m/config.pbtxt", "max_batch_size: 8")
      store.fault = (request) => {
        if (request.url?.endsWith("model.onnx") === true && request.headers["if-match"] !== undefined) {
          store.put("m/1/model.onnx", plus(2))
          store.fault = () => false
        }
        return false
      }
      const { call, load } = yield* serve()
      yield* load("m")
      expect(yield* call("m")).toBe(2)
    }),
  )

  it.live("fails with a reason that has no secret, and no path of the cache", () =>
    Effect.gen(function* () {
      const { store, serve, cacheDirectory } = yield* fixture
      store.put("wrong/1/model.onnx", "no model")
      store.put("hostile/../../x", "x")
      store.put("gone/1/model.onnx", plus(1))
      store.fault = (request, response) => {
        if (request.url?.includes("gone") !== true) return false
        FakeS3.refuse(response, 403, "AccessDenied")
        return true
      }
      const { load } = yield* serve()
      const reason = (name: string) => Effect.map(Effect.flip(load(name)), ({ message }) => message)
      expect(yield* reason("wrong")).toContain(`${store.url}/wrong/1/model.onnx is not an ONNX model`)
      expect(yield* reason("hostile")).toContain("'hostile/../../x' cannot be a file: '..' in it is no name")
      expect(yield* reason("gone")).toContain(
        `Failed to get object at ${store.url}/gone due to exception: AccessDenied, error message: it is so`,
      )
      expect(yield* reason("none")).toBe("failed to load 'none', failed to poll from model repository")
      for (const name of ["wrong", "hostile", "gone"]) {
        const message = yield* reason(name)
        expect(message).not.toContain(cacheDirectory)
        expect(message).not.toContain(secret)
      }
    }),
  )
})

describe("the cache", () => {
  it.live("serves a start without the store, and says so", () =>
    Effect.gen(function* () {
      const { store, serve, messages, log, files } = yield* fixture
      store.put("m/1/model.onnx", plus(1))
      yield* ended(serve("none"))
      expect(files("views")).toEqual([])
      store.fault = (request) => {
        request.socket.destroy()
        return true
      }
      const { call } = yield* serve("none").pipe(Effect.provide(log))
      expect(yield* call("m")).toBe(1)
      expect(messages.join("\n")).toContain(`The model repository ${store.url} is served from the cache`)
    }),
  )

  it.live("serves no start with credentials that the store refuses", () =>
    Effect.gen(function* () {
      const { store, serve, messages, log } = yield* fixture
      store.put("m/1/model.onnx", plus(1))
      yield* ended(serve("none"))
      store.fault = (_, response) => {
        FakeS3.refuse(response, 403, "InvalidAccessKeyId")
        return true
      }
      const { isLive } = yield* serve("none").pipe(Effect.provide(log))
      expect(isLive()).toBe(false)
      const cause = "Exception: 'InvalidAccessKeyId' Message: 'it is so'"
      const text = messages.join("\n")
      expect(text).toContain(`Unable to create S3 filesystem client. Check account credentials. ${cause}`)
      expect(text).not.toContain(secret)
    }),
  )

  it.live("downloads nothing again, unless a file was written to", () =>
    Effect.gen(function* () {
      const { store, serve, cacheDirectory, files } = yield* fixture
      store.put("m/1/model.onnx", plus(1))
      yield* ended(serve("none"))
      yield* ended(serve("none"))
      expect(store.gets).toHaveLength(1)
      const [name = ""] = files("objects")
      const path = join(cacheDirectory, "objects", name)
      chmodSync(path, 0o644)
      writeFileSync(path, new Uint8Array(readFileSync(path).length))
      const { call } = yield* serve("none")
      expect(yield* call("m")).toBe(1)
      expect(store.gets).toHaveLength(2)
    }),
  )

  it.live("evicts what is not in use, the least recently used first, and refuses what cannot fit", () =>
    Effect.gen(function* () {
      const { store, serve, files } = yield* fixture
      const { length } = plus(1)
      for (const name of ["a", "b", "c"]) store.put(`${name}/1/model.onnx`, plus(name.charCodeAt(0)))
      const { load, unload } = yield* serve("explicit", { maxCacheBytes: 2 * length })
      yield* load("a")
      yield* load("b")
      const refused = yield* Effect.flip(load("c"))
      expect(refused.message).toContain(`${length} bytes are needed beside ${2 * length} bytes in use`)
      yield* unload("a")
      yield* Effect.promise(() => expect.poll(() => files("views")).toHaveLength(1))
      yield* load("c").pipe(Effect.retry({ times: 20 }))
      expect(files("objects")).toHaveLength(2)
    }),
  )
})
