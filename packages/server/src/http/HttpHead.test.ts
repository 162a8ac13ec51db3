/** HEAD: the status and the headers of GET, without a body, on every port and over both versions of HTTP. */
import { request as httpRequest } from "node:http"
import { connect as connectHttp2 } from "node:http2"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { exchange, serve } from "../port/RawHttp.fixture.ts"

interface Answer {
  readonly status: unknown
  readonly type: unknown
  readonly length: unknown
  readonly body: string
}

const overHttp1 = (port: number, method: string, path: string) =>
  Effect.callback<Answer>((resume) => {
    const request = httpRequest({ port, method, path, headers: { connection: "close" } }, (response) => {
      let body = ""
      const { "content-type": type, "content-length": length } = response.headers
      response.on("data", (chunk: Buffer) => (body += chunk.toString()))
      response.on("end", () => resume(Effect.succeed({ status: response.statusCode, type, length, body })))
    })
    request.end()
  })

const overHttp2 = (port: number, method: string, path: string) =>
  Effect.callback<Answer>((resume) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const stream = session.request({ ":method": method, ":path": path })
    let answer: Answer = { status: undefined, type: undefined, length: undefined, body: "" }
    stream.on("response", ({ ":status": status, "content-type": type, "content-length": length }) => {
      answer = { ...answer, status, type, length }
    })
    let body = ""
    stream.on("data", (chunk: Buffer) => (body += chunk.toString()))
    stream.on("close", () => {
      session.close()
      resume(Effect.succeed({ ...answer, body }))
    })
    stream.end()
  })

const live = "/inference.GRPCInferenceService/ServerLive?connect=v1&encoding=json&message=%7B%7D"

describe("HEAD", () => {
  it.live.each([
    ["http", "/v2", 200],
    ["http", "/v2/health/live", 200],
    ["http", "/v2/health/ready", 200],
    ["http", "/v2/models/echo", 200],
    ["http", "/v2/models/echo/config", 200],
    ["http", "/v2/models/none", 404],
    ["http", "/nowhere", 404],
    ["http", "/v2/logging", 200],
    ["http", "/v2/systemsharedmemory/status", 200],
    ["http", "/v2/models/echo/infer", 405],
    ["grpc", live, 200],
    ["metrics", "/nowhere", 404],
  ] as const)("port %s, %s: as GET, without a body", ([name, path, status]) =>
    Effect.gen(function* () {
      const server = yield* serve()
      const get = yield* overHttp1(server[name], "GET", path)
      expect(get.status).toBe(status)
      expect(yield* overHttp1(server[name], "HEAD", path)).toEqual({ ...get, body: "" })
      if (name === "metrics") return
      expect(yield* overHttp1(server.port, "HEAD", path)).toEqual({ ...get, body: "" })
      expect(yield* overHttp2(server.port, "HEAD", path)).toEqual({ ...get, status, body: "" })
    }),
  )

  it.live("metrics: as GET, without a body", () =>
    Effect.gen(function* () {
      const { metrics } = yield* serve()
      const get = yield* overHttp1(metrics, "GET", "/metrics")
      const head = yield* overHttp1(metrics, "HEAD", "/metrics")
      // The text changes with time.
      expect(head).toEqual({ ...get, length: expect.stringMatching(/^\d{3,}$/), body: "" })
    }),
  )

  it.live("the connection goes on after it", () =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const request = (method: string, more = "") => `${method} /v2 HTTP/1.1\r\nhost: x\r\n${more}\r\n`
      const text = yield* exchange(http, request("HEAD") + request("HEAD") + request("GET", "connection: close\r\n"))
      expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3)
      expect(text.match(/"name":"nereid"/g)).toHaveLength(1)
    }),
  )

  it.live("a path with GET allows it", () =>
    Effect.gen(function* () {
      const { http, metrics } = yield* serve()
      for (const [port, path] of [
        [http, "/v2"],
        [metrics, "/metrics"],
      ] as const) {
        const text = yield* exchange(port, `DELETE ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
        expect(text).toMatch(/^HTTP\/1\.1 405 [^]*\r\nallow: GET, HEAD\r\n/)
      }
    }),
  )
})
