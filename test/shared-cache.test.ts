/** Servers of a repository that share responses: which requests the second one executes. */
import { CacheSettings, type SharedCache } from "@nereid/core/internal/cache/CacheSettings"
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { expect, it, onTestFinished } from "vitest"
import { repository, type RepositoryFixture } from "./fixtures/repository.ts"
import * as RepositoryClient from "./RepositoryClient.ts"

const anywhere = { host: "127.0.0.1", port: 0 } as const

const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(effect, scope))
}

const memory = (): SharedCache => {
  const values = new Map<string, Uint8Array>()
  return {
    keyOf: (parts) => JSON.stringify([...parts].map((part) => (typeof part === "string" ? part : [...part]))),
    get: (key, found) => {
      let isCancelled = false
      queueMicrotask(() => void (isCancelled || found(values.get(key))))
      return () => void (isCancelled = true)
    },
    set: (key, value) => void values.set(key, value),
  }
}

const single = "data_type: TYPE_FP32 dims: 1"
const config = `max_batch_size: 4 input { name: "X" ${single} } output { name: "Y" ${single} } response_cache { enable: true }`

/** Adds a number that differs with each execution, so that a response shows who executed it. */
let executions = 0
Reflect.set(globalThis, "execution", () => (executions += 1))

const counting = `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({
  Y: new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.of(X.data[0] + globalThis.execution()).buffer)) })) }`

const write = (fixture: RepositoryFixture, text = counting) => {
  fixture.write("m/1/model.js", text)
  fixture.write("m/config.pbtxt", config)
}

const serve = async (fixture: RepositoryFixture, shared: SharedCache) => {
  const models = Repository.layer({ directories: [fixture.path], control: "explicit", load: ["*"] })
  const served = Server.layer([], { http: anywhere, grpc: anywhere, metrics: false }).pipe(
    Layer.provide(models),
    Layer.provide(Layer.succeed(CacheSettings, { shared })),
  )
  const { http, grpc } = Context.get(await scoped(Layer.build(served)), Server.Server)
  const ports = { http: http?.port ?? 0, grpc: grpc?.port ?? 0 }
  return {
    http: await scoped(RepositoryClient.make.HTTP(ports)),
    grpc: await scoped(RepositoryClient.make.gRPC(ports)),
  }
}

it("share responses of equal models over both transports, and none after the files of one change", async () => {
  const shared = memory()
  const [a, b] = [await scoped(repository), await scoped(repository)]
  write(a)
  write(b)
  const [one, other] = [await serve(a, shared), await serve(b, shared)]
  expect(await one.http.infer("m", 10)).toBe(11)
  expect([await other.http.infer("m", 10), await other.grpc.infer("m", 10), await one.grpc.infer("m", 10)]).toEqual([
    11, 11, 11,
  ])
  expect(await other.grpc.infer("m", 20)).toBe(22)
  expect(await one.http.infer("m", 20)).toBe(22)
  write(b, `${counting}\n`)
  expect(await other.http.load("m")).toBe(undefined)
  expect([await other.http.infer("m", 10), await one.http.infer("m", 10)]).toEqual([13, 11])
})

it("Server.start passes the cache settings of its layer to the repository, also for later loads", async () => {
  const shared = memory()
  const stored = await scoped(repository)
  write(stored)
  const layer = Layer.mergeAll(
    Repository.layer({ directories: [stored.path], control: "explicit", load: ["*"] }),
    Layer.succeed(CacheSettings, { shared }),
  )
  const start = async () => {
    const server = await Server.start([], layer, { http: anywhere, grpc: anywhere, metrics: false })
    onTestFinished(server.stop)
    const ports = { http: server.http.port, grpc: server.grpc.port }
    return {
      http: await scoped(RepositoryClient.make.HTTP(ports)),
      grpc: await scoped(RepositoryClient.make.gRPC(ports)),
    }
  }
  const [one, other] = [await start(), await start()]
  const first = await one.http.infer("m", 30)
  expect([await other.http.infer("m", 30), await other.grpc.infer("m", 30)]).toEqual([first, first])
  write(stored, `${counting}\n\n`)
  expect([await one.http.load("m"), await other.grpc.load("m")]).toEqual([undefined, undefined])
  const second = await one.grpc.infer("m", 30)
  expect(second).not.toBe(first)
  expect(await other.http.infer("m", 30)).toBe(second)
})
