/** Requests that pages of other sites send through a browser, and pages whose host name leads to this server. */
import { hostname } from "node:os"
import { type IncomingHttpHeaders, request as httpRequest } from "node:http"
import { connect as connectHttp2 } from "node:http2"
import { describe, expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect, Exit, Layer } from "effect"
import * as Server from "../Server.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { X: Tensor.FP32(2) },
}) {}

const any = { host: "127.0.0.1", port: 0 }

const build = (options: Server.ServerOptions) =>
  Layer.build(
    Server.layer([Echo], { http: any, grpc: any, metrics: false, ...options }).pipe(
      Layer.provide(Model.each(Echo, (sample) => Effect.succeed(sample))),
    ),
  )

const serve = Effect.fnUntraced(function* (options: Server.ServerOptions = {}) {
  const { http, grpc } = yield* Effect.provideContext(Server.Server, yield* build(options))
  return { http: http?.port ?? 0, grpc: grpc?.port ?? 0 }
})

type Headers = { readonly [name: string]: string }

const send = (port: number, method: string, path: string, headers: Headers, body = "") =>
  Effect.callback<{
    readonly status: number | undefined
    readonly headers: IncomingHttpHeaders
    readonly body: string
  }>((resume) => {
    const length = { connection: "close", "content-length": String(Buffer.byteLength(body)) }
    const request = httpRequest({ port, method, path, headers: { ...length, ...headers } }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode, headers: response.headers, body: text })),
      )
    })
    request.end(body)
  })

const body = JSON.stringify({ inputs: [{ name: "X", datatype: "FP32", shape: [2], data: [1, 2] }] })

/** As a page sends it without a preflight. */
const infer = (port: number, headers: Headers) =>
  send(port, "POST", "/v2/models/echo/infer", { "content-type": "text/plain", ...headers }, body)

const settings = (port: number, headers: Headers) =>
  send(port, "POST", "/v2/logging", { "content-type": "text/plain", ...headers }, "{}")

const evil = "https://evil.example"

describe("a request of a page on another site", () => {
  it.live.each<readonly [string, Headers]>([
    ["of another site", { origin: evil, "sec-fetch-site": "cross-site" }],
    ["of another port of this host", { origin: "http://127.0.0.1:3000", "sec-fetch-site": "same-site" }],
    ["without an origin", { "sec-fetch-site": "cross-site" }],
    ["of a browser that does not tell the site", { origin: evil }],
    ["of a file or a sandbox", { origin: "null" }],
    ["of an origin that is none", { origin: "evil" }],
  ])("%s is refused", ([, headers]) =>
    Effect.gen(function* () {
      const { http, grpc } = yield* serve()
      const refused = yield* infer(http, headers)
      expect(refused.status).toBe(403)
      expect(JSON.parse(refused.body)).toEqual({ error: expect.stringMatching(/another origin.*cors/) })
      expect((yield* settings(http, headers)).status).toBe(403)
      const rpc = { "content-type": "application/json", ...headers }
      const call = yield* send(grpc, "POST", "/inference.GRPCInferenceService/LogSettings", rpc, "{}")
      expect(call.status).toBe(403)
      expect(JSON.parse(call.body)).toEqual({
        code: "permission_denied",
        message: expect.stringMatching(/another origin.*cors/),
      })
    }),
  )

  it.live("is answered where it changes and costs nothing", () =>
    Effect.gen(function* () {
      const { http, grpc } = yield* serve()
      const headers = { origin: evil, "sec-fetch-site": "cross-site" }
      expect((yield* send(http, "GET", "/v2/health/ready", headers)).status).toBe(200)
      expect((yield* send(http, "GET", "/v2/models/echo", headers)).status).toBe(200)
      const live = "/inference.GRPCInferenceService/ServerLive?connect=v1&encoding=json&message=%7B%7D"
      expect((yield* send(grpc, "GET", live, headers)).status).toBe(200)
    }),
  )

  it.live("is answered if CORS allows its origin, or all", () =>
    Effect.gen(function* () {
      const listed = yield* serve({ cors: { origins: ["https://app.example.com"] } })
      const headers = { origin: "https://app.example.com", "sec-fetch-site": "cross-site" }
      expect((yield* infer(listed.http, headers)).status).toBe(200)
      expect((yield* infer(listed.http, { ...headers, origin: evil })).status).toBe(403)
      expect((yield* infer(listed.http, { ...headers, origin: "null" })).status).toBe(403)
      const all = yield* serve({ cors: { origins: "*" } })
      expect((yield* infer(all.http, { ...headers, origin: evil })).status).toBe(200)
      expect((yield* infer(all.http, { "sec-fetch-site": "cross-site" })).status).toBe(200)
    }),
  )
})

describe("inference is answered", () => {
  it.live.each<readonly [string, Headers]>([
    ["to clients that are no browsers, for any host", { host: "models.example.com" }],
    ["to fetch of Node", { host: "models.example.com", "sec-fetch-mode": "cors" }],
    ["to a page of the same origin", { host: "models.example.com", "sec-fetch-site": "same-origin", origin: evil }],
    [
      "to a page whose browser tells only the origin",
      { host: "Models.example.com:80", origin: "http://models.example.com" },
    ],
    ["to a page behind a proxy for TLS", { host: "models.example.com", origin: "https://models.example.com" }],
    ["to a user who enters the address", { host: "models.example.com", "sec-fetch-site": "none" }],
  ])("%s", ([, headers]) =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      expect((yield* infer(http, headers)).status).toBe(200)
    }),
  )
})

const controls: ReadonlyArray<readonly [method: string, path: string, body: string]> = [
  ["POST", "/v2/repository/index", "{}"],
  ["POST", "/v2/repository/models/echo/load", "{}"],
  ["POST", "/v2/repository/models/echo/unload", "{}"],
  ["GET", "/v2/logging", ""],
  ["POST", "/v2/logging", "{}"],
  ["GET", "/v2/trace/setting", ""],
  ["POST", "/v2/trace/setting", "{}"],
  ["GET", "/v2/systemsharedmemory/status", ""],
  ["POST", "/v2/systemsharedmemory/region/r/register", '{"key":"/k","byte_size":1}'],
]

describe("the control plane", () => {
  it.live.each(controls)("%s %s is refused for an unknown host name", ([method, path, body]) =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const refused = yield* send(http, method, path, { host: "evil.example:8000" }, body)
      expect(refused.status).toBe(403)
      expect(JSON.parse(refused.body)).toEqual({ error: expect.stringMatching(/'evil\.example'.*--allowed-hosts/) })
    }),
  )

  it.live("is refused over Connect as well", () =>
    Effect.gen(function* () {
      const { grpc } = yield* serve()
      const headers = { "content-type": "application/json", host: "evil.example" }
      const call = (method: string, given = headers) =>
        send(grpc, "POST", `/inference.GRPCInferenceService/${method}`, given, "{}")
      const refused = yield* call("LogSettings")
      expect([refused.status, JSON.parse(refused.body)]).toEqual([
        403,
        { code: "permission_denied", message: expect.stringMatching(/'evil\.example'/) },
      ])
      for (const method of ["RepositoryModelLoad", "RepositoryIndex", "TraceSetting", "SystemSharedMemoryStatus"]) {
        expect((yield* call(method)).status).toBe(403)
      }
      expect((yield* call("ServerLive")).status).toBe(200)
      expect((yield* call("LogSettings", { ...headers, host: "localhost:8001" })).status).toBe(200)
    }),
  )

  it.live("is answered over HTTP/2 without TLS, which no browser speaks", () =>
    Effect.gen(function* () {
      const { grpc } = yield* serve()
      const status = yield* Effect.callback<unknown>((resume) => {
        const session = connectHttp2(`http://127.0.0.1:${grpc}`)
        const path = "/inference.GRPCInferenceService/LogSettings"
        const headers = { ":authority": "triton.prod:8001", "content-type": "application/json" }
        const stream = session.request({ ":method": "POST", ":path": path, ...headers })
        stream.on("response", (fields) => resume(Effect.succeed(fields[":status"])))
        stream.on("close", () => session.close())
        stream.resume().end("{}")
      })
      expect(status).toBe(200)
    }),
  )

  it.live.each([
    "localhost:8000",
    "LOCALHOST",
    "app.localhost",
    "127.0.0.1:8000",
    "10.1.2.3",
    "[::1]:8000",
    "triton",
    "triton.prod.svc:8000",
    "triton.prod.svc.cluster.local.",
    "ip-10-0-0-1.ec2.internal",
    hostname(),
  ])("is answered for the host %s", (host) =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      expect((yield* settings(http, { host })).status).toBe(200)
    }),
  )

  it.live.each([
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.localhost.example",
    "cluster.local.example",
    "1.2.3.4.5",
    "evil.example\\@localhost",
    "evil.example:x",
    "[::1].evil.example",
  ])("is refused for the host %s", (host) =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      expect((yield* settings(http, { host })).status).toBe(403)
    }),
  )

  it.live("is answered if its API is restricted, with the secret and any host", () =>
    Effect.gen(function* () {
      const restriction = { apis: ["logging"], key: "admin-key", value: "secret" } as const
      const { http } = yield* serve({ restrictedApis: { http: [restriction] } })
      const host = "models.example.com"
      expect((yield* settings(http, { host, "admin-key": "secret" })).status).toBe(200)
      expect((yield* settings(http, { host })).status).toBe(403)
      expect((yield* send(http, "GET", "/v2/trace/setting", { host, "admin-key": "secret" })).status).toBe(403)
    }),
  )
})

describe("allowedHosts", () => {
  it.live("adds hosts, and keeps the others from all APIs but health", () =>
    Effect.gen(function* () {
      const { http } = yield* serve({ allowedHosts: ["models.example.com", "*.internal.example"] })
      for (const host of ["models.example.com", "Models.Example.com:8000", "a.b.internal.example", "localhost"]) {
        expect((yield* infer(http, { host })).status).toBe(200)
        expect((yield* settings(http, { host })).status).toBe(200)
      }
      for (const host of ["evil.example", "x.models.example.com", "internal.example", "xinternal.example"]) {
        expect((yield* infer(http, { host })).status).toBe(403)
        expect((yield* settings(http, { host })).status).toBe(403)
        expect((yield* send(http, "GET", "/v2/models/echo", { host })).status).toBe(403)
        expect((yield* send(http, "GET", "/v2/health/ready", { host })).status).toBe(200)
      }
    }),
  )

  it.live("'*' allows all, as CORS for all origins does; hosts of listed origins are allowed", () =>
    Effect.gen(function* () {
      const host = "evil.example"
      expect((yield* settings((yield* serve({ allowedHosts: "*" })).http, { host })).status).toBe(200)
      expect((yield* settings((yield* serve({ cors: { origins: "*" } })).http, { host })).status).toBe(200)
      const listed = yield* serve({ cors: { origins: ["https://app.example.com:444", "null"] } })
      expect((yield* settings(listed.http, { host: "app.example.com" })).status).toBe(200)
      expect((yield* settings(listed.http, { host })).status).toBe(403)
    }),
  )

  const examples = "models.example.com or *.example.com"

  it.effect.each(["https://a.example", "a.example:80", "", "a b", "*", "a.*", "a/b"])("refuses '%s'", (host) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(Effect.scoped(build({ allowedHosts: [host] })))
      expect(failure.message).toBe(
        `'${host}' is not an allowed host, which is a name without scheme and port: ${examples}`,
      )
    }),
  )

  it.live("accepts IPv6 addresses and names in capitals", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Effect.scoped(build({ allowedHosts: ["::1", "Models.Example.com"] })))
      expect(Exit.isSuccess(exit)).toBe(true)
    }),
  )
})
