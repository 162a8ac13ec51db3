/**
 * HTTP and gRPC on one port, over HTTP/1.1 and HTTP/2. The conformance suite (test/conformance) covers the responses.
 */
import { Agent, request as httpRequest } from "node:http"
import type { ClientHttp2Session, IncomingHttpHeaders } from "node:http2"
import { connect as connectSocket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Queue, Result, Scope } from "effect"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import {
  addSub,
  addSubResponse,
  clients,
  closed,
  inferFrame,
  isHealthy,
  modelInfer,
  modelInferPath,
  rawCall,
  rawSession,
  rawSocket,
  seen,
  serve as serveGrpc,
} from "./grpc/GrpcServer.fixture.ts"
import * as OnePort from "./OnePort.ts"
import * as BrowserAccess from "./gateway/BrowserAccess.ts"
import * as Cors from "./port/Cors.ts"

const serve = Effect.fnUntraced(function* (options: Partial<OnePort.OnePortOptions> = {}, maxInFlightSize = Infinity) {
  const server = yield* serveGrpc({}, { maxInFlightSize })
  const { gateway } = server
  const address = { host: "127.0.0.1", port: 0, stopTimeoutMillis: 1_000 }
  const { port } = yield* OnePort.make(gateway, { ...address, http: {}, grpc: {}, ...options })
  return { ...server, port, authority: `http://127.0.0.1:${port}` }
})

interface TestRequest {
  readonly path: string
  /** Body of a POST; a request without a body is a GET. */
  readonly body?: string | Uint8Array
  readonly headers?: { readonly [name: string]: string }
}

interface TestResponse {
  readonly status: number | undefined
  readonly body: string
  readonly header: (name: string) => unknown
}

/** A request of HTTP over HTTP/2; a status of undefined where the stream ended without one. */
const overHttp2 = (session: ClientHttp2Session, { path, body, headers = {} }: TestRequest) =>
  Effect.callback<TestResponse>((resume) => {
    const stream = session.request({ ":method": body === undefined ? "GET" : "POST", ":path": path, ...headers })
    let received = ""
    let fields: { readonly [name: string]: unknown } = {}
    stream.on("error", () => {})
    stream.on("response", (response) => (fields = response))
    stream.setEncoding("utf8").on("data", (text: string) => (received += text))
    stream.on("close", () => {
      const status = fields[":status"]
      const response = { status: typeof status === "number" ? status : undefined, body: received }
      resume(Effect.succeed({ ...response, header: (name) => fields[name] }))
    })
    stream.end(body)
    return Effect.sync(() => stream.close(8))
  })

const overHttp1 = (port: number, { path, body, headers = {} }: TestRequest, agent?: Agent) =>
  Effect.callback<TestResponse>((resume) => {
    const method = body === undefined ? "GET" : "POST"
    const request = httpRequest({ port, path, method, headers, ...(agent && { agent }) }, (response) => {
      let received = ""
      response.setEncoding("utf8").on("data", (text: string) => (received += text))
      response.on("end", () =>
        resume(
          Effect.succeed({
            status: response.statusCode,
            body: received,
            header: (name) => response.headers[name],
          }),
        ),
      )
    })
    request.on("error", () => resume(Effect.succeed({ status: undefined, body: "", header: () => undefined })))
    request.end(body)
    return Effect.sync(() => request.destroy())
  })

const inferJson = (model: string, data: ReadonlyArray<number>, more: object = {}): TestRequest => ({
  path: `/v2/models/${model}/infer`,
  body: JSON.stringify({
    inputs: [{ name: "X", datatype: "UINT8", shape: model === "gate" ? [1, 1] : [data.length], data }],
    ...more,
  }),
})

const echo = inferJson("echo", [7])

const echoed = { status: 200, body: expect.stringContaining('"data":[7]') }

describe("the target of a request", () => {
  it.live.each(Object.entries(clients))("an RPC: %s", ([, connect]) =>
    Effect.gen(function* () {
      const call = yield* connect(yield* serve())
      expect(yield* call(modelInfer, addSub())).toMatchObject({ response: { rawOutputContents: addSubResponse } })
    }),
  )

  it.live("a path of HTTP, over HTTP/1.1 and HTTP/2", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const session = yield* rawSession(server)
      for (const infer of [overHttp1.bind(undefined, server.port), overHttp2.bind(undefined, session)]) {
        expect(yield* infer(echo)).toMatchObject(echoed)
        expect(yield* infer({ path: "/v2" })).toMatchObject({ status: 200, body: expect.stringContaining("nereid") })
        expect(yield* infer({ path: "/v2/health/live?x=1" })).toMatchObject({ status: 200, body: "" })
        expect(yield* infer({ path: "/" })).toMatchObject({ status: 404, body: '{"error":"Not Found"}' })
      }
    }),
  )

  it.live("an unknown method belongs to the RPC handler, as does gRPC on any path", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const session = yield* rawSession(server)
      const unknown = { path: "/inference.Other/Call", body: "{}", headers: { "content-type": "application/json" } }
      expect(yield* overHttp1(server.port, unknown)).toMatchObject({ status: 404, body: "" })
      for (const path of ["/inference.Other/Call", "/x"]) {
        const call = { chunks: [inferFrame(addSub())], headers: { ":path": path } }
        expect(yield* rawCall(session, call)).toMatchObject({ status: "12", message: `unknown method ${path}` })
      }
      // grpc-go accepts a status in the head only if the head ends the stream, which node's classes do not send.
      const stream = session.request({ ":method": "POST", ":path": "/x", "content-type": "application/grpc" })
      const trailers = yield* Effect.callback<IncomingHttpHeaders>((resume) => {
        stream.on("trailers", (fields) => resume(Effect.succeed(fields)))
        stream.on("close", () => resume(Effect.succeed({})))
        stream.resume().end()
      })
      expect(trailers).toMatchObject({ "grpc-status": "12" })
    }),
  )
})

describe("the first bytes of a connection select its protocol", () => {
  const sentInBytes = (port: number, bytes: Uint8Array, enough: (received: Buffer) => boolean) =>
    Effect.callback<Buffer>((resume) => {
      let received = Buffer.alloc(0)
      const socket = connectSocket({ port, host: "127.0.0.1", noDelay: true })
      const send = (index: number): void => {
        if (index < bytes.length) socket.write(bytes.subarray(index, index + 1), () => setImmediate(send, index + 1))
      }
      socket.on("connect", () => send(0))
      socket.on("data", (chunk: Buffer) => {
        received = Buffer.concat([received, chunk])
        if (enough(received)) resume(Effect.succeed(received))
      })
      return Effect.sync(() => socket.destroy())
    })

  it.live("HTTP/1.1 in single bytes", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const body = String(echo.body)
      const head = `POST ${echo.path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`
      const request = Buffer.from(head + body)
      const response = yield* sentInBytes(port, request, (received) => received.includes('"data":[7]'))
      expect(response.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    }),
  )

  it.live("HTTP/2 in single bytes", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const settings = [0, 0, 0, 4, 0, 0, 0, 0, 0]
      const greeting = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Buffer.from(settings)])
      const response = yield* sentInBytes(port, greeting, ({ length }) => length > 3)
      expect(response[3]).toBe(4)
    }),
  )

  it.live.each(["", "P", "PRI * HT"])("one that goes no further than '%s' is closed", (sent) =>
    Effect.gen(function* () {
      const { port } = yield* serve({ greetingTimeoutMillis: 20 })
      expect(yield* rawSocket(port, sent)).toBe("")
    }),
  )

  it.live("bytes that are neither close their connection only", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      expect(yield* rawSocket(server.port, "\0\x01\x02")).toMatch(/^HTTP\/1\.1 400 /)
      expect(yield* rawSocket(server.port, "PRI * HTTP/2.0\r\n\r\nno preface")).not.toContain("HTTP/1.1")
      expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
    }),
  )

  it.live("closes a connection above the limit at once, for any protocol", () =>
    Effect.gen(function* () {
      const server = yield* serve({ maxConnections: 2 })
      const agent = new Agent({ keepAlive: true })
      const session = yield* rawSession(server)
      expect(yield* overHttp2(session, echo)).toMatchObject(echoed)
      expect(yield* overHttp1(server.port, echo, agent)).toMatchObject(echoed)
      expect(yield* rawSocket(server.port, "GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n")).toBe("")
      agent.destroy()
    }),
  )
})

describe("HTTP over HTTP/2", () => {
  it.live("a caller that goes away takes its request out of the queue", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const session = yield* rawSession(server)
      const first = yield* Effect.forkChild(overHttp2(session, inferJson("gate", [7])))
      yield* Queue.take(server.started)
      yield* Queue.take(server.events)
      const second = yield* Effect.forkChild(overHttp2(session, inferJson("gate", [7])))
      expect(yield* Queue.take(server.events)).toBe("asked")
      yield* Fiber.interrupt(second)
      expect(yield* Queue.take(server.events)).toBe("cancelled")
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(first)).toMatchObject({ status: 200 })
    }),
  )

  it.live("an aborted body triggers no callback", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const session = yield* rawSession(server)
      // A whole document, whose end the caller takes back.
      const stream = session.request({ ":method": "POST", ":path": echo.path })
      stream.on("error", () => {})
      stream.write(echo.body, () => stream.close(8))
      yield* Effect.callback<void>((resume) => void stream.on("close", () => resume(Effect.void)))
      expect(yield* overHttp2(session, echo)).toMatchObject(echoed)
      expect(yield* Queue.size(server.events)).toBe(1)
    }),
  )

  it.live("a body beyond the limit is refused, whether its length is announced or not", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ http: { maxInputSize: 100 } }))
      const body = new Uint8Array(1_000_000)
      for (const headers of [{}, { "content-length": "1000000" }]) {
        const response = yield* overHttp2(session, { ...echo, body, headers })
        expect(response).toMatchObject({
          status: 400,
          body: expect.stringContaining("maximum allowed input size of 100"),
        })
      }
      expect(yield* overHttp2(session, echo)).toMatchObject(echoed)
    }),
  )

  it.live("a caller gets its answer though it goes on sending, and then its stream ends", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve())
      const stream = session.request({ ":method": "POST", ":path": "/v2/health/live" })
      stream.on("error", () => {})
      stream.resume()
      const send = () => void stream.write(new Uint8Array(100_000), (error) => error ?? send())
      send()
      const status = yield* Effect.callback<unknown>((resume) => {
        stream.on("response", (headers) => resume(Effect.succeed(headers[":status"])))
      })
      expect(status).toBe(405)
      yield* Effect.callback<void>((resume) => void stream.on("close", () => resume(Effect.void)))
    }),
  )

  it.live("a body that does not arrive in time is cut off, and one beyond the memory budget is refused", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ grpc: { receiveTimeoutMillis: 20 } }))
      const stream = session.request({ ":method": "POST", ":path": echo.path })
      stream.on("error", () => {})
      stream.write("{")
      yield* Effect.callback<void>((resume) => void stream.on("close", () => resume(Effect.void)))
      expect(stream.rstCode).toBe(11)

      const other = yield* rawSession(yield* serve({}, 300_000))
      expect(yield* overHttp2(other, { ...echo, body: new Uint8Array(300_001) })).toMatchObject({ status: 503 })
      for (let index = 0; index < 10; index++) expect(yield* overHttp2(other, echo)).toMatchObject(echoed)
    }),
  )

  it.live("answers Expect: 100-continue", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const session = yield* rawSession(server)
      const rpc = { path: modelInferPath, body: '{"modelName":"absent"}' }
      for (const each of [echo, rpc]) {
        const stream = session.request({
          ":method": "POST",
          ":path": each.path,
          "content-type": "application/json",
          expect: "100-continue",
        })
        let status: unknown
        stream.on("response", (headers) => (status = headers[":status"]))
        stream.on("continue", () => stream.end(each.body)).resume()
        yield* Effect.callback<void>((resume) => void stream.on("close", () => resume(Effect.void)))
        expect(status).toBe(each === echo ? 200 : 404)
      }
    }),
  )

  it.live("a defect is an answer", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve())
      const response = yield* overHttp2(session, inferJson("echo", [7], { id: "defect" }))
      expect(response).toMatchObject({ status: 500, body: '{"error":"internal error"}' })
      expect(yield* overHttp2(session, echo)).toMatchObject(echoed)
    }),
  )

  it.live("pages of other origins may send requests as with gRPC", () =>
    Effect.gen(function* () {
      const cors = Result.getOrThrow(Cors.make({ origins: ["https://app.example.com"] }))
      const browserAccess = Result.getOrThrow(BrowserAccess.make({ cors: { origins: ["https://app.example.com"] } }))
      const options = { cors, browserAccess }
      const session = yield* rawSession(yield* serve({ http: options, grpc: options }))
      const headers = { origin: "https://app.example.com" }
      const response = yield* overHttp2(session, { ...echo, headers })
      expect(response).toMatchObject(echoed)
      expect(response.header("access-control-allow-origin")).toBe("https://app.example.com")
      expect(String(response.header("access-control-expose-headers"))).toContain(tagHeader)
    }),
  )
})

it.live("a stop answers what is in flight over both, and closes what is idle at once", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const server = yield* Scope.provide(serve({ stopTimeoutMillis: 60_000 }), scope)
    const sessions = yield* Effect.all([rawSession(server), rawSession(server)])
    const [busy, idle] = sessions
    const agent = new Agent({ keepAlive: true })
    const http2 = yield* Effect.forkChild(overHttp2(busy, inferJson("gate", [7])))
    yield* Queue.take(server.started)
    const http1 = yield* Effect.forkChild(overHttp1(server.port, inferJson("gate", [8]), agent))
    yield* Queue.take(server.events)
    yield* Queue.take(server.events)
    const silent = yield* Effect.forkChild(rawSocket(server.port, ""))
    yield* seen(idle)
    const stopping = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    expect(yield* Fiber.join(silent)).toBe("")
    yield* closed(idle)
    expect(stopping.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(server.open, undefined)
    expect(yield* Fiber.join(http2)).toMatchObject({ status: 200 })
    expect(yield* Fiber.join(http1)).toMatchObject({ status: 200 })
    yield* closed(busy)
    yield* Fiber.join(stopping)
    agent.destroy()
  }),
)
