/**
 * TLS on all ports: with gRPC and HTTP clients, mutual, and with certificates that change while connections are open.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2"
import { Agent, request as httpsRequest } from "node:https"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import * as grpc from "@grpc/grpc-js"
import { Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Server } from "@nereid/server"
import { authority, type Certificate } from "./fixtures/certificate.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

const trusted = authority("ours")
const other = authority("other")
const caller = trusted.issue("caller")

/** All ports with TLS; `change` writes other certificates, `entered` is done and `gate` awaited by the model for 0. */
const serve = Effect.fnUntraced(function* ({ mutual = false } = {}) {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-tls-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true })),
  )
  const paths = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key"), ca: join(folder, "ca.crt") }
  const change = ({ cert, key }: Certificate, ca = trusted.cert) =>
    Effect.promise(async () => {
      await writeFile(paths.cert, cert)
      await writeFile(paths.key, key)
      await writeFile(paths.ca, ca)
    })
  yield* change(trusted.issue("one"))
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const model = Model.each(Echo, ({ X }) =>
    X === 0
      ? Deferred.succeed(entered, undefined).pipe(Effect.andThen(Deferred.await(gate)), Effect.as({ X }))
      : Effect.succeed({ X }),
  )
  const any = { host: "127.0.0.1", port: 0 }
  const tls = mutual ? { ...paths, mutual } : { cert: paths.cert, key: paths.key }
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
  const layer = Server.layer([Echo], {
    http: any,
    grpc: any,
    port: any,
    metrics: false,
    tls: { http: tls, grpc: tls, port: tls },
  })
  const context = yield* Layer.buildWithScope(layer.pipe(Layer.provide(model)), scope)
  const server = yield* Effect.provideContext(Server.Server, context)
  const stop = Scope.close(scope, Exit.void)
  const { http, grpc, port } = server
  return { http: http?.port ?? 0, grpc: grpc?.port ?? 0, port: port?.port ?? 0, change, entered, gate, stop }
})

const livePath = `/${GRPCInferenceService.typeName}/ServerLive`

type Certificates = Partial<Certificate>

/** Each client as one function, from a port to its answer for 7; the certificates are its own. Others: Tls.test.ts. */
const clients: {
  readonly [name: string]: readonly ["http" | "grpc" | "port", (port: number, own: Certificates) => Promise<unknown>]
} = {
  "our client, https": ["http", (port, own) => infer(`https://localhost:${port}`, own)],
  "our client, grpcs": ["grpc", (port, own) => infer(`grpcs://localhost:${port}`, own)],
  "grpc-js": ["grpc", (port, own) => grpcJs(port, own)],
  "our client, https, one port": ["port", (port, own) => infer(`https://localhost:${port}`, own)],
  "our client, grpcs, one port": ["port", (port, own) => infer(`grpcs://localhost:${port}`, own)],
  "grpc-js, one port": ["port", (port, own) => grpcJs(port, own)],
  "HTTP over HTTP/2, one port": ["port", (port, own) => overHttp2(port, own)],
}

const grpcJs = async (port: number, { key, cert }: Certificates) => {
  const own = [key ? Buffer.from(key) : null, cert ? Buffer.from(cert) : null] as const
  const client = new grpc.Client(`localhost:${port}`, grpc.credentials.createSsl(Buffer.from(trusted.cert), ...own))
  const same = (bytes: Buffer) => bytes
  const response = new Promise((resolve, reject) =>
    client.makeUnaryRequest(livePath, same, same, Buffer.alloc(0), (error, value) =>
      error ? reject(error) : resolve(value?.length === 2 && 7),
    ),
  )
  return await response.finally(() => client.close())
}

/** As browsers, and other clients that offer HTTP/2 ahead of HTTP/1.1. */
const overHttp2 = (port: number, own: Certificates) =>
  new Promise((resolve, reject) => {
    const session = connectHttp2(`https://localhost:${port}`, { ca: trusted.cert, ...own })
    session.on("error", reject)
    const stream = session.request({ ":path": "/v2/models/echo/ready" })
    stream.on("error", reject)
    stream.on("response", (headers) => resolve(headers[":status"] === 200 && 7))
    stream.resume().on("close", () => {
      session.close()
      reject(new Error("closed without an answer"))
    })
  })

const infer = async (url: string, own: Certificates) => {
  await using client = await Client.connect(Echo, { url, tls: { ca: trusted.cert, ...own } })
  return (await client.infer({ X: 7 })).X
}

describe.each(Object.entries(clients))("%s", (_, [port, call]) => {
  it.live("is answered over TLS", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      expect(yield* Effect.promise(() => call(server[port], {}))).toBe(7)
    }),
  )

  it.live("needs a certificate of the authority where it is mutual", () =>
    Effect.gen(function* () {
      const server = yield* serve({ mutual: true })
      const failed = (own: Certificates) =>
        Effect.promise(() =>
          call(server[port], own).then(
            () => false,
            () => true,
          ),
        )
      expect(yield* failed({})).toBe(true)
      expect(yield* failed(other.issue("stranger"))).toBe(true)
      expect(yield* Effect.promise(() => call(server[port], caller))).toBe(7)
    }),
  )
})

const closing = (socket: Socket) =>
  Effect.callback<void>((resume) => {
    if (socket.closed) return resume(Effect.void)
    socket.on("close", () => resume(Effect.void))
  })

/** A connection of this kind, which resets may end. */
const opened = <S extends Socket>(make: () => S, event: string) =>
  Effect.acquireRelease(
    Effect.callback<S>((resume) => {
      const socket = make()
      socket.on("error", () => {})
      socket.resume()
      socket.on(event, () => resume(Effect.succeed(socket)))
    }),
    (socket) => Effect.sync(() => socket.destroy()),
  )

const plain = (port: number) => opened(() => connect(port, "127.0.0.1"), "connect")

const secure = (port: number, options: ConnectionOptions = {}) =>
  opened<TLSSocket>(() => connectTls({ port, host: "127.0.0.1", ca: trusted.cert, ...options }), "secureConnect")

/** Clients that do not speak TLS, or close early: only their connections are closed. */
const strangers: { readonly [name: string]: (socket: Socket) => void } = {
  "HTTP/1.1 without TLS": (socket) => socket.write("GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"),
  "HTTP/2 without TLS": (socket) => socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  noise: (socket) => socket.write(Buffer.from([22, 3, 1, 255, 255, 0, 0, 0])),
  "an end at once": (socket) => socket.end(),
  "a reset at once": (socket) => socket.resetAndDestroy(),
}

it.live.each(Object.entries(strangers))("%s is closed, and the ports go on", ([, send]) =>
  Effect.gen(function* () {
    const server = yield* serve()
    for (const port of ["http", "grpc", "port"] as const) {
      const socket = yield* plain(server[port])
      send(socket)
      // Noise that could become a handshake waits for the rest of it.
      socket.end()
      yield* closing(socket)
    }
    expect(yield* Effect.promise(() => infer(`https://localhost:${server.http}`, {}))).toBe(7)
    expect(yield* Effect.promise(() => infer(`grpcs://localhost:${server.grpc}`, {}))).toBe(7)
  }),
)

it.live("the ports offer their protocols, and HTTP/1.1 to who knows none", () =>
  Effect.gen(function* () {
    const server = yield* serve()
    const agreed = (port: number, ALPNProtocols: ReadonlyArray<string>) =>
      Effect.map(secure(port, { ALPNProtocols: [...ALPNProtocols] }), ({ alpnProtocol }) => alpnProtocol)
    expect(yield* agreed(server.grpc, ["http/1.1", "h2"])).toBe("h2")
    expect(yield* agreed(server.grpc, ["http/1.1"])).toBe("http/1.1")
    expect(yield* agreed(server.http, ["h2", "http/1.1"])).toBe("http/1.1")
    expect(yield* agreed(server.port, ["http/1.1", "h2"])).toBe("h2")
    expect(yield* agreed(server.port, ["http/1.1"])).toBe("http/1.1")
    const silent = yield* secure(server.grpc)
    silent.write("GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    yield* closing(silent)
    expect(silent.bytesRead).toBeGreaterThan(100)
  }),
)

it.effect("new certificates are for new connections, and open ones go on", () =>
  Effect.gen(function* () {
    const server = yield* serve({ mutual: true })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const own = { ca: trusted.cert, ...caller }
    const session = yield* Effect.acquireRelease(
      Effect.sync(() => connectHttp2(`https://localhost:${server.grpc}`, own)),
      (session) => Effect.sync(() => session.destroy()),
    )
    const call = Effect.callback<boolean>((resume) => {
      const request = httpsRequest({ port: server.http, path: "/v2/health/live", agent, ...own }, (response) => {
        response.resume().on("end", () => resume(Effect.succeed(request.reusedSocket)))
      })
      request.end()
    })
    yield* call
    expect(yield* streamStatus(session)).toBe(200)

    yield* server.change(trusted.issue("two"), trusted.cert + other.cert)
    for (const port of [server.http, server.grpc]) {
      const shown = Effect.map(secure(port, caller), (socket) => socket.getPeerCertificate().subject.CN)
      const turn = TestClock.adjust("5 seconds").pipe(Effect.andThen(Effect.scoped(shown)))
      yield* Effect.repeat(turn, { until: (name) => name === "two" })
    }
    // The authorities have changed with them.
    expect(yield* Effect.promise(() => grpcJs(server.grpc, other.issue("new caller")))).toBe(7)

    expect(yield* call).toBe(true)
    expect(yield* streamStatus(session)).toBe(200)
    agent.destroy()
  }),
)

it.effect("a client whose authority is gone is refused, also with a session from before", () =>
  Effect.gen(function* () {
    const server = yield* serve({ mutual: true })
    const to = { port: server.http, host: "127.0.0.1", ca: trusted.cert }
    const session = yield* Effect.callback<Buffer>((resume) => {
      const socket = connectTls({ ...to, ...caller }).on("error", () => {})
      socket.resume().once("session", (ticket: Buffer) => {
        socket.destroy()
        resume(Effect.succeed(ticket))
      })
    })
    const accepted = (options: ConnectionOptions) =>
      Effect.callback<boolean>((resume) => {
        const socket = connectTls({ ...to, ...options })
        socket.on("error", () => {})
        socket.on("close", () => resume(Effect.succeed(responded)))
        let responded = false
        socket.on("data", () => (responded = true))
        socket.write("GET /v2 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
      })
    expect(yield* accepted({ ...caller, session })).toBe(true)
    yield* server.change(trusted.issue("two"), other.cert)
    const stranger = other.issue("new caller")
    yield* Effect.repeat(TestClock.adjust("5 seconds").pipe(Effect.andThen(accepted(stranger))), {
      until: (isAccepted) => isAccepted,
    })
    expect(yield* accepted({ ...caller, session })).toBe(false)
    expect(yield* accepted({ session })).toBe(false)
  }),
)

const streamStatus = (session: ClientHttp2Session) =>
  Effect.callback<unknown>((resume) => {
    const stream = session.request({ ":method": "POST", ":path": livePath, "content-type": "application/grpc" })
    stream.on("response", (headers) => resume(Effect.succeed(headers[":status"])))
    stream.resume().end(Buffer.alloc(5))
  })

it.live("a stop answers requests in flight, and closes connections that are idle or have not shaken hands", () =>
  Effect.gen(function* () {
    const server = yield* serve()
    const url = `https://localhost:${server.http}`
    const held = yield* Effect.forkChild(
      Effect.promise(async () => {
        await using client = await Client.connect(Echo, { url, tls: { ca: trusted.cert } })
        return (await client.infer({ X: 0 })).X
      }),
    )
    yield* Deferred.await(server.entered)
    const idle: Array<Socket> = []
    for (const port of [server.http, server.grpc]) idle.push(yield* plain(port), yield* secure(port))
    idle.push(yield* secure(server.grpc, { ALPNProtocols: ["h2"] }))
    const stopping = yield* Effect.forkChild(server.stop, { startImmediately: true })
    for (const socket of idle) yield* closing(socket)
    expect(stopping.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(server.gate, undefined)
    expect(yield* Fiber.join(held)).toBe(0)
    yield* Fiber.join(stopping)
  }),
)

it.live("a certificate that cannot be used is an error of the start, which names its port", () =>
  Effect.gen(function* () {
    for (const port of ["http", "grpc"] as const) {
      const tls = { [port]: { cert: "/nowhere/tls.crt", key: "/nowhere/tls.key" } }
      const any = { host: "127.0.0.1", port: 0 }
      const layer = Server.layer([Echo], { http: any, grpc: any, metrics: false, tls })
      const model = Model.each(Echo, (sample) => Effect.succeed(sample))
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer.pipe(Layer.provide(model)))))
      expect(error).toMatchObject({ _tag: "ServeError" })
      expect(error.message).toMatch(/^cannot use \/nowhere\/tls\.\w+ for TLS on (HTTP|gRPC): ENOENT/)
    }
  }),
)
