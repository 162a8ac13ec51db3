/** Heads of HTTP/1.1 requests that can be read in two ways, on every port of a server. */
import { connect } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { body, exchange, infer, serve } from "./RawHttp.fixture.ts"

const ports = ["http", "grpc", "port", "metrics"] as const

const paths = {
  http: "/v2/health/live",
  port: "/v2/health/live",
  grpc: "/inference.GRPCInferenceService/ServerLive?connect=v1&encoding=json&message=%7B%7D",
  metrics: "/metrics",
}

const last = "connection: close\r\n\r\n"

/** A request that the server must never see: it follows a refused one. */
const smuggled = `POST /v2/logging HTTP/1.1\r\nhost: x\r\ncontent-length: 23\r\n\r\n{"log_verbose_level":7}\n`

const verboseLevel = (port: number) =>
  Effect.map(exchange(port, `GET /v2/logging HTTP/1.1\r\nhost: x\r\n${last}`), (text) =>
    Number(/"log_verbose_level":(\d+)/.exec(text)?.[1]),
  )

describe("the host", () => {
  it.live.each(ports)("two Host headers are refused, also with one value (port %s)", (name) =>
    Effect.gen(function* () {
      const server = yield* serve()
      for (const [one, other] of ["xx", "xy"]) {
        const hosts = `Host: ${one}\r\nhOST: ${other}\r\n`
        const text = yield* exchange(server[name], `GET ${paths[name]} HTTP/1.1\r\n${hosts}\r\n`)
        expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*connection: close/)
        expect(text).toContain('{"error":"the request has 2 Host headers, expected one"}')
      }
    }),
  )

  it.live.each(ports)("HTTP/1.1 requires one, HTTP/1.0 does not (port %s)", (name) =>
    Effect.gen(function* () {
      const server = yield* serve()
      const missing = yield* exchange(server[name], `GET ${paths[name]} HTTP/1.1\r\n\r\n`)
      expect(missing).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*"the request has no Host header/)
      expect(yield* exchange(server[name], `GET ${paths[name]} HTTP/1.0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    }),
  )
})

describe("the request target", () => {
  it.live.each(ports)("an absolute form is answered as its path (port %s)", (name) =>
    Effect.gen(function* () {
      const server = yield* serve()
      for (const target of ["http://localhost", "HTTP://localhost:8000", "http://[::1]:80", "https://localhost"]) {
        const head = `GET ${target}${paths[name]} HTTP/1.1\r\nhost: other\r\n`
        expect(yield* exchange(server[name], head + last), target).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      }
    }),
  )

  it.live("an absolute form has a query, and may have no path", () =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const get = (target: string) => exchange(http, `GET ${target} HTTP/1.1\r\nhost: x\r\n${last}`)
      expect(yield* get("http://localhost/v2?a=http://b/")).toContain('"name":"nereid"')
      for (const target of ["http://localhost", "http://localhost?/v2"]) expect(yield* get(target)).toContain(" 404 ")
      const posted = infer("echo").replace(" /v2", " http://localhost/v2")
      expect(yield* exchange(http, posted.replace("\r\n", `\r\nconnection: close\r\n`))).toContain(" 200 OK")
    }),
  )

  it.live("its authority is the host that is checked, whatever the Host header says", () =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const get = (target: string, host: string) =>
        exchange(http, `GET ${target}/v2/logging HTTP/1.1\r\n${host}${last}`)
      const refused = /^HTTP\/1\.1 403 [^]*the host 'evil\.example' is not allowed/
      expect(yield* get("http://evil.example", "host: localhost\r\n")).toMatch(refused)
      expect(yield* get("http://evil.example:8000", "host: localhost\r\n")).toMatch(refused)
      expect(yield* get("http://localhost", "host: evil.example\r\n")).toContain(" 200 OK")
      expect(yield* get("", "host: evil.example\r\n")).toMatch(refused)
      const older = yield* exchange(http, "GET http://evil.example/v2/logging HTTP/1.0\r\n\r\n")
      expect(older).toMatch(refused)
    }),
  )

  it.live("its authority is the host that is forwarded", () =>
    Effect.gen(function* () {
      const { http } = yield* serve({ forwardHeaders: { http: "^host$" }, allowedHosts: ["a.example"] })
      const post = (target: string) =>
        exchange(
          http,
          infer("echo", { head: last.slice(0, -2) + "host: b.example\r\n" }).replace(" /v2", ` ${target}/v2`),
        )
      expect(yield* post("http://a.example")).toContain(" 200 OK")
      expect(yield* post("")).toContain(" 403 ")
    }),
  )

  it.live.each(ports)("other targets are refused (port %s)", (name) =>
    Effect.gen(function* () {
      const server = yield* serve()
      for (const target of [
        "OPTIONS *",
        "GET *",
        "GET ftp://localhost/v2",
        "GET http://",
        "GET http:///v2",
        "GET http://user@localhost/v2",
        "GET http://local\\host/v2",
        "GET v2",
        "GET localhost:8000",
      ]) {
        const text = yield* exchange(server[name], `${target} HTTP/1.1\r\nhost: x\r\n\r\n`)
        expect(text, target).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*connection: close[^]*{"error":"/)
      }
    }),
  )

  it.live.each(ports)("CONNECT is refused (port %s)", (name) =>
    Effect.gen(function* () {
      const server = yield* serve()
      const text = yield* exchange(server[name], "CONNECT localhost:80 HTTP/1.1\r\nhost: localhost:80\r\n\r\nhello")
      expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*connection: close[^]*CONNECT is not supported/)
    }),
  )
})

it.live("the connection of a refused client closes also if the client never ends its side", () =>
  Effect.gen(function* () {
    const { http } = yield* serve()
    for (const bytes of ["hello\r\n\r\n", "CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n"]) {
      const text = yield* Effect.callback<string>((resume) => {
        let received = ""
        const socket = connect({ port: http, host: "127.0.0.1", allowHalfOpen: true }, () => socket.write(bytes))
        socket.on("data", (chunk) => (received += chunk.toString()))
        // Sent without an end, until the server has closed.
        const timer = setInterval(() => socket.write("more"), 20)
        socket.on("error", () => {})
        socket.on("close", () => {
          clearInterval(timer)
          resume(Effect.succeed(received))
        })
      })
      expect(text).toMatch(/^HTTP\/1\.1 400 /)
    }
  }),
)

describe("the transfer coding", () => {
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const post = (head: string, content: string, version = "1.1") =>
    `POST /v2/models/echo/infer HTTP/${version}\r\nhost: x\r\n${head}\r\n${content}`

  it.live("chunked is read, in any case", () =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      for (const coding of ["chunked", "Chunked", " chunked "]) {
        const text = yield* exchange(http, post(`connection: close\r\nTransfer-Encoding:${coding}\r\n`, chunked))
        expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      }
    }),
  )

  it.live.each([
    ["another coding below", "Transfer-Encoding: gzip, chunked\r\n"],
    ["another coding below, in a header of its own", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"],
    ["chunked twice", "Transfer-Encoding: chunked, chunked\r\n"],
    ["chunked twice, in two headers", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"],
    ["another coding above", "Transfer-Encoding: chunked, identity\r\n"],
    ["identity", "Transfer-Encoding: identity\r\n"],
    ["identity and a length", "Transfer-Encoding: identity\r\nContent-Length: 5\r\n"],
    ["an unknown coding", "Transfer-Encoding: xchunked\r\n"],
    ["a parameter", "Transfer-Encoding: chunked;q=1\r\n"],
    ["an empty element", "Transfer-Encoding: , chunked\r\n"],
    ["nothing", "Transfer-Encoding:\r\nContent-Length: 5\r\n"],
    ["a length after it", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"],
    ["a length before it", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"],
    ["a folded line", "Transfer-Encoding:\r\n chunked\r\n"],
    ["a folded line after it", "Transfer-Encoding: chunked\r\n , gzip\r\n"],
    ["a space before the colon", "Transfer-Encoding : chunked\r\n"],
    ["a vertical tab", "Transfer-Encoding: \vchunked\r\n"],
    ["a bare line feed", "X: y\nTransfer-Encoding: chunked\r\n"],
  ] as const)("%s is refused, and nothing behind it is read", ([, head]) =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const text = yield* exchange(http, post(head, chunked + smuggled))
      expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*connection: close[^]*{"error":"/)
      expect(text.split("HTTP/1.1 ")).toHaveLength(2)
      expect(yield* verboseLevel(http)).toBe(0)
    }),
  )

  it.live("HTTP/1.0 has none", () =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const head = "connection: keep-alive\r\nTransfer-Encoding: chunked\r\n"
      const text = yield* exchange(http, post(head, chunked + smuggled, "1.0"))
      expect(text).toMatch(/^HTTP\/1\.1 400 [^]*the request is HTTP\/1\.0, which has no Transfer-Encoding/)
      expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
      expect(yield* verboseLevel(http)).toBe(0)
    }),
  )

  it.live("a refusal waits for the responses to earlier requests", () =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const text = yield* exchange(
        http,
        infer("echo") + post("Transfer-Encoding: gzip, chunked\r\n", chunked + smuggled),
      )
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"])
      expect(text).toContain("the Transfer-Encoding 'gzip, chunked' is not supported, expected 'chunked'")
      expect(yield* verboseLevel(http)).toBe(0)
    }),
  )
})
