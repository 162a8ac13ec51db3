/** CORS preflight requests of browsers, on every port and protocol that a page can reach. */
import { type IncomingHttpHeaders, request as httpRequest } from "node:http"
import { connect as connectHttp2 } from "node:http2"
import { describe, expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect, Layer } from "effect"
import type { Cors } from "./Cors.ts"
import * as Server from "../Server.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { X: Tensor.FP32(2) },
}) {}

const serve = Effect.fnUntraced(function* (cors?: Cors) {
  const any = { host: "127.0.0.1", port: 0 }
  const options = { http: any, grpc: any, metrics: false, ...(cors && { cors }) } as const
  const model = Model.each(Echo, (sample) => Effect.succeed(sample))
  const context = yield* Layer.build(Server.layer([Echo], options).pipe(Layer.provide(model)))
  const { http, grpc } = yield* Effect.provideContext(Server.Server, context)
  return { http: http?.port ?? 0, grpc: grpc?.port ?? 0 }
})

interface TestRequest {
  readonly method: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string
}

interface TestResponse {
  readonly status: unknown
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

type Send = (port: number, request: TestRequest) => Effect.Effect<TestResponse>

const overHttp1: Send = (port, { method, path, headers = {}, body = "" }) =>
  Effect.callback((resume) => {
    const close = { connection: "close", "content-length": String(Buffer.byteLength(body)) }
    const request = httpRequest({ port, method, path, headers: { ...headers, ...close } }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode, headers: response.headers, body: text })),
      )
    })
    request.end(body)
  })

const overHttp2: Send = (port, { method, path, headers = {}, body = "" }) =>
  Effect.callback((resume) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: body === "" })
    let responded: IncomingHttpHeaders & { readonly ":status"?: number | undefined } = {}
    let text = ""
    stream.on("response", (fields) => (responded = fields))
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
    stream.on("end", () => {
      session.close()
      resume(Effect.succeed({ status: responded[":status"], headers: responded, body: text }))
    })
    if (body !== "") stream.end(body)
  })

const page = "https://app.example.com"

const live = "/inference.GRPCInferenceService/ServerLive"

/** Requests of a page, by port and protocol. */
const places: ReadonlyArray<readonly [name: string, port: "http" | "grpc", send: Send, request: TestRequest]> = [
  [
    "HTTP inference",
    "http",
    overHttp1,
    {
      method: "POST",
      path: "/v2/models/echo/infer",
      body: JSON.stringify({ inputs: [{ name: "X", datatype: "FP32", shape: [2], data: [1, 2] }] }),
    },
  ],
  [
    "gRPC-Web over HTTP/1.1",
    "grpc",
    overHttp1,
    { method: "POST", path: live, headers: { "content-type": "application/grpc-web+proto" }, body: "\0\0\0\0\0" },
  ],
  [
    "gRPC-Web over HTTP/2",
    "grpc",
    overHttp2,
    { method: "POST", path: live, headers: { "content-type": "application/grpc-web+proto" }, body: "\0\0\0\0\0" },
  ],
  [
    "Connect over HTTP/1.1",
    "grpc",
    overHttp1,
    { method: "POST", path: live, headers: { "content-type": "application/json" }, body: "{}" },
  ],
  ["Connect's GET", "grpc", overHttp2, { method: "GET", path: `${live}?connect=v1&encoding=json&message=%7B%7D` }],
]

const preflight = ({ path }: TestRequest, origin: string): TestRequest => {
  const headers = { origin, "access-control-request-method": "POST", "access-control-request-headers": "x-user-agent" }
  return { method: "OPTIONS", path, headers }
}

const from = (request: TestRequest, origin: string): TestRequest => ({
  ...request,
  headers: { ...request.headers, origin },
})

const corsHeaders = ({ headers }: TestResponse) =>
  Object.keys(headers).filter((name) => name.startsWith("access-control-") || name === "vary")

const list = (response: TestResponse, name: string) =>
  String(response.headers[`access-control-${name}`]).toLowerCase().split(", ")

describe.each(places)("%s", (_, port, send, request) => {
  it.live("a page of an origin that is allowed learns what it may send, and sees the answer", () =>
    Effect.gen(function* () {
      const server = yield* serve({ origins: ["https://other.example.com", page], maxAge: "10 minutes" })
      const allowed = yield* send(server[port], preflight(request, page))
      expect(allowed).toMatchObject({
        status: 204,
        body: "",
        headers: { "access-control-allow-origin": page, "access-control-max-age": "600", vary: "Origin" },
      })
      expect(list(allowed, "allow-methods")).toEqual(["get", "post"])
      expect(list(allowed, "allow-headers")).toEqual(
        expect.arrayContaining([
          "content-type",
          "accept-encoding",
          "inference-header-content-length",
          "nereid-timeout-ms",
          "x-grpc-web",
          "x-user-agent",
          "grpc-timeout",
          "connect-protocol-version",
          "connect-timeout-ms",
        ]),
      )
      const response = yield* send(server[port], from(request, page))
      expect(response).toMatchObject({ status: 200, headers: { "access-control-allow-origin": page, vary: "Origin" } })
      expect(list(response, "expose-headers")).toEqual(
        expect.arrayContaining(["grpc-status", "grpc-message", "inference-header-content-length", "nereid-error"]),
      )
    }),
  )

  it.live("a page of another origin gets no CORS headers", () =>
    Effect.gen(function* () {
      const server = yield* serve({ origins: [page] })
      for (const origin of ["https://evil.example.com", "http://app.example.com", `${page}:8443`, "null"]) {
        const refused = yield* send(server[port], preflight(request, origin))
        expect(refused.status, origin).toBe(405)
        expect(corsHeaders(refused), origin).toEqual(["vary"])
        const response = yield* send(server[port], from(request, origin))
        const status = request.method === "GET" ? 200 : 403
        expect([response.status, corsHeaders(response)], origin).toEqual([status, ["vary"]])
      }
    }),
  )

  it.live("allows all origins and more headers if configured", () =>
    Effect.gen(function* () {
      const server = yield* serve({ origins: "*", headers: ["authorization"], exposedHeaders: ["x-mine"] })
      const allowed = yield* send(server[port], preflight(request, "null"))
      expect(allowed).toMatchObject({
        status: 204,
        headers: { "access-control-allow-origin": "*", "access-control-max-age": "7200" },
      })
      expect(allowed.headers.vary).toBeUndefined()
      expect(list(allowed, "allow-headers")).toContain("authorization")
      expect(list(yield* send(server[port], from(request, page)), "expose-headers")).toContain("x-mine")
    }),
  )

  it.live("it is off by default", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const refused = yield* send(server[port], preflight(request, page))
      expect([refused.status, corsHeaders(refused)]).toEqual([405, []])
      expect(corsHeaders(yield* send(server[port], from(request, page)))).toEqual([])
    }),
  )
})

it.live("a page can read errors, and other OPTIONS requests are answered normally", () =>
  Effect.gen(function* () {
    const server = yield* serve({ origins: [page] })
    const headers = { origin: page }
    const missing = yield* overHttp1(server.http, { method: "GET", path: "/v2/models/nobody", headers })
    expect(missing).toMatchObject({ status: 404, headers: { "access-control-allow-origin": page } })
    expect(list(missing, "expose-headers")).toContain("nereid-error")
    const options = yield* overHttp1(server.http, { method: "OPTIONS", path: "/v2", headers })
    expect(options).toMatchObject({ status: 405, body: '{"error":"Method Not Allowed"}' })
    // No page, but a cache in between may keep the answer for one.
    const plain = yield* overHttp1(server.http, { method: "GET", path: "/v2" })
    expect(corsHeaders(plain)).toEqual(["vary"])
  }),
)

it.live.each(["app.example.com", `${page}/`, "HTTPS://app.example.com", `${page}:443`, "https://*.example.com", ""])(
  "'%s' is an invalid origin, which fails the start",
  (origin) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(serve({ origins: [page, origin] }))
      expect(error).toMatchObject({
        _tag: "ServeError",
        message: `'${origin}' is not a CORS origin, which is a scheme, a host and an optional port: https://app.example.com`,
      })
    }),
)
