import { randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import { connect, createServer, type Server as NetServer, type Socket } from "node:net"
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import * as Server from "./Server.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { x: Tensor.INT32(1) },
  outputs: { x: Tensor.INT32(1) },
}) {}

const echo = Model.each(Echo, ({ x }) => Effect.succeed({ x }))

const free = { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false } as const

const infer = (port: number | undefined) =>
  Effect.promise(async () => {
    const body = JSON.stringify({ inputs: [{ name: "x", shape: [1], datatype: "INT32", data: [7] }] })
    // A connection that fetch keeps may be one that a stopped server has just closed.
    const headers = { connection: "close" }
    const response = await fetch(`http://127.0.0.1:${port}/v2/models/echo/infer`, { method: "POST", headers, body })
    return { status: response.status, json: await response.json() }
  })

const status = (port: number | undefined, path: string) =>
  Effect.promise(async () => (await fetch(`http://127.0.0.1:${port}${path}`)).status)

/** Checks that no connection is accepted on the port. */
const refuses = (port: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(false)))
    socket.on("error", () => resume(Effect.succeed(true)))
    return Effect.sync(() => socket.destroy())
  })

it.live("serves on every enabled front end, and reports the addresses", () =>
  Effect.gen(function* () {
    const local = { host: "127.0.0.1", port: 0 }
    const layer = Server.layer([Echo], { http: local, grpc: local, metrics: local }).pipe(Layer.provide(echo))
    const server = yield* Effect.provide(Server.Server, layer)
    expect(server.models.map(({ description: { name } }) => name)).toEqual(["echo"])
    for (const address of [server.http, server.grpc, server.metrics]) expect(address?.port).toBeGreaterThan(0)
  }),
)

it.live("serves everything on one port in addition to the others; a protocol on that port has no other port", () =>
  Effect.gen(function* () {
    const local = { host: "127.0.0.1", port: 0 }
    const serve = (options: Server.ServerOptions) =>
      Effect.map(Layer.build(Server.layer([Echo], options).pipe(Layer.provide(echo))), (context) =>
        Context.get(context, Server.Server),
      )
    const all = yield* Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serve({ http: local, grpc: local, metrics: false, port: local })
        for (const address of [server.http, server.port])
          expect(yield* infer(address?.port)).toMatchObject({ status: 200 })
        expect(new Set([server.http, server.grpc, server.port].map((address) => address?.port)).size).toBe(3)
        return server
      }),
    )
    const port = { host: "127.0.0.1", port: all.port?.port ?? 0 }
    for (const usual of ["http", "grpc"] as const) {
      const options = { http: false, grpc: false, metrics: false, [usual]: port, port } as const
      yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* serve(options)
          expect(server[usual]).toBeUndefined()
          expect(yield* infer(server.port?.port)).toMatchObject({ status: 200, json: { outputs: [{ data: [7] }] } })
        }),
      )
      const tls = { [usual]: { cert: "a.crt", key: "a.key" } }
      const error = yield* Effect.flip(Effect.scoped(serve({ ...options, tls })))
      expect(error.message).toContain(
        `tls.${usual} has no effect: HTTP and gRPC share 127.0.0.1:${port.port}; set tls.port instead`,
      )
    }
  }),
)

it.live.skipIf(!existsSync("/dev/shm"))("opens shared memory of callers only where that is allowed", () =>
  Effect.gen(function* () {
    const register = (allowClientSharedMemory: boolean) =>
      Effect.gen(function* () {
        const server = yield* Server.Server
        const path = `http://127.0.0.1:${server.http?.port}/v2/systemsharedmemory/region/r/register`
        const body = `{"key":"nereid-${randomUUID()}","byte_size":1}`
        const headers = { connection: "close" }
        return yield* Effect.promise(async () => (await fetch(path, { method: "POST", headers, body })).text())
      }).pipe(Effect.provide(Server.layer([Echo], { ...free, allowClientSharedMemory }).pipe(Layer.provide(echo))))
    expect(yield* register(true)).toContain("Unable to open shared memory region")
    expect(yield* register(false)).toContain("Client shared memory is disabled")
  }),
)

it.live("starts again on the port of a server that has stopped", () =>
  Effect.gen(function* () {
    const use = (port: number) =>
      Effect.gen(function* () {
        const server = yield* Server.Server
        const response = yield* infer(server.http?.port)
        expect(response).toMatchObject({ status: 200, json: { outputs: [{ data: [7] }] } })
        return server.http?.port ?? 0
      }).pipe(
        Effect.provide(Server.layer([Echo], { ...free, http: { host: "127.0.0.1", port } }).pipe(Layer.provide(echo))),
      )
    const port = yield* use(0)
    expect(yield* use(port)).toBe(port)
  }),
)

it.live("a port in use is a clear error of the layer", () =>
  Effect.gen(function* () {
    const blocker = yield* Effect.acquireRelease(
      Effect.callback<NetServer>((resume) => {
        const server = createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => server.close()),
    )
    const address = blocker.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    for (const front of ["http", "grpc", "port", "metrics"] as const) {
      const options = { http: false, grpc: false, metrics: false, [front]: { host: "127.0.0.1", port } } as const
      const exit = yield* Effect.exit(
        Effect.scoped(Layer.build(Server.layer([Echo], options).pipe(Layer.provide(echo)))),
      )
      expect(exit, front).toMatchObject({ _tag: "Failure" })
      const error = Exit.isFailure(exit) ? yield* Effect.flip(exit) : undefined
      expect(error).toMatchObject({ _tag: "ServeError", message: expect.stringContaining(String(port)) })
    }
  }),
)

it.live("one connection more than the maximum is closed at once, on HTTP and on gRPC", () =>
  Effect.gen(function* () {
    const local = { host: "127.0.0.1", port: 0 }
    const options = { http: local, grpc: local, metrics: false, maxConnections: 1 } as const
    yield* Effect.gen(function* () {
      const server = yield* Server.Server
      for (const address of [server.http, server.grpc]) {
        const first = yield* opened(address?.port ?? 0)
        const second = yield* opened(address?.port ?? 0)
        yield* Effect.callback<void>((resume) => {
          second.once("close", () => resume(Effect.void))
          second.on("error", () => {})
          second.resume()
        })
        expect(first.destroyed).toBe(false)
        first.destroy()
      }
    }).pipe(Effect.provide(Server.layer([Echo], options).pipe(Layer.provide(echo))))
  }),
)

const opened = (port: number) =>
  Effect.callback<Socket>((resume) => {
    const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
  })

/** A model whose only request waits for the test. */
const gated = Effect.gen(function* () {
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const layer = Model.each(Echo, ({ x }) =>
    Effect.gen(function* () {
      yield* Deferred.succeed(entered, undefined)
      yield* Deferred.await(gate)
      return { x }
    }),
  )
  return { entered, gate, layer }
})

it.live("a stop waits for requests in flight, and answers them", () =>
  Effect.gen(function* () {
    const { entered, gate, layer } = yield* gated
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(Server.layer([Echo], free).pipe(Layer.provide(layer)), scope)
    const server = yield* Effect.provideContext(Server.Server, context)
    const response = yield* Effect.forkChild(infer(server.http?.port), { startImmediately: true })
    yield* Deferred.await(entered)
    expect(yield* status(server.http?.port, "/v2/health/ready")).toBe(200)
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    expect(server.isReady()).toBe(false)
    expect(stopped.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(response)).toMatchObject({ status: 200, json: { outputs: [{ data: [7] }] } })
    yield* Fiber.join(stopped)
  }),
)

it.live("a stop closes all listeners at once, also those with requests in flight", () =>
  Effect.gen(function* () {
    const { entered, gate, layer } = yield* gated
    const local = { host: "127.0.0.1", port: 0 }
    const scope = yield* Scope.make()
    const options = { http: local, grpc: local, metrics: local }
    const context = yield* Layer.buildWithScope(Server.layer([Echo], options).pipe(Layer.provide(layer)), scope)
    const server = yield* Effect.provideContext(Server.Server, context)
    const response = yield* Effect.forkChild(infer(server.http?.port), { startImmediately: true })
    yield* Deferred.await(entered)
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    for (const address of [server.http, server.grpc, server.metrics]) {
      expect(yield* refuses(address?.port ?? 0), String(address?.port)).toBe(true)
    }
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(response)).toMatchObject({ status: 200 })
    yield* Fiber.join(stopped)
  }),
)

it.live("a stop waits no longer than the drain timeout", () =>
  Effect.gen(function* () {
    const { entered, layer } = yield* gated
    const scope = yield* Scope.make()
    const options = { ...free, drainTimeout: 10 }
    const context = yield* Layer.buildWithScope(Server.layer([Echo], options).pipe(Layer.provide(layer)), scope)
    const server = yield* Effect.provideContext(Server.Server, context)
    const response = yield* Effect.forkChild(infer(server.http?.port), { startImmediately: true })
    yield* Deferred.await(entered)
    yield* Scope.close(scope, Exit.void)
    expect(yield* Fiber.join(response)).toMatchObject({
      status: 503,
      json: { error: expect.stringContaining("Server is stopping") },
    })
  }),
)
