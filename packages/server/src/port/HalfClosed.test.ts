/** Clients that end their side of a connection: those that wait for their response, and those that have gone. */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Queue } from "effect"
import { authority } from "../../../../test/fixtures/certificate.ts"
import { converse, infer, serve } from "./RawHttp.fixture.ts"

const end = { end: true }

const probe = "HTTP/1.1 102 Processing\r\n\r\n"

/** Bytes of a unary call of Connect. */
const call = (model: string) => {
  const message = JSON.stringify({
    modelName: model,
    inputs: [{ name: "X", datatype: "FP32", shape: [2], contents: { fp32Contents: [1, 2] } }],
  })
  const path = "/inference.GRPCInferenceService/ModelInfer"
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${message.length}\r\n\r\n${message}`
}

const serveTls = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-half-closed-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true })),
  )
  const trusted = authority()
  const certificate = trusted.issue("server")
  const files = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") }
  yield* Effect.promise(() => writeFile(files.cert, certificate.cert))
  yield* Effect.promise(() => writeFile(files.key, certificate.key))
  return { server: yield* serve({ tls: { http: files } }), ca: trusted.cert }
})

describe("a client that has ended its side", () => {
  it.live.each(["http", "port"] as const)("has its response, and then the connection closes (port %s)", (name) =>
    Effect.gen(function* () {
      const server = yield* serve()
      for (const version of ["1.1", "1.0"]) {
        const { closed } = yield* converse(server[name], infer("echo", { version }), end)
        expect(yield* closed).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"data":\[1,2\]/)
      }
    }),
  )

  it.live("has its response also if its request takes longer than several probes", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { until, closed } = yield* converse(server.http, infer("gate"), end)
      yield* until(/(HTTP\/1\.1 102 Processing\r\n\r\n){3}/)
      yield* Deferred.succeed(server.open, undefined)
      expect((yield* closed).replaceAll(probe, "")).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"data":\[1,2\]/)
      expect(yield* Queue.take(server.ended)).toBe("done")
    }),
  )

  it.live("has its response over HTTP/1.0, without any probe", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const older = yield* converse(server.http, infer("gate", { version: "1.0" }), end)
      yield* Queue.take(server.begun)
      // Two probes to another client show that there was time for one.
      const newer = yield* converse(server.http, infer("gate"), end)
      yield* newer.until(/(HTTP\/1\.1 102 Processing\r\n\r\n){2}/)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* older.closed).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    }),
  )

  it.live("has all of its pipelined responses, in their order", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { until, closed } = yield* converse(server.http, infer("gate") + infer("echo") + infer("none"), end)
      yield* until(/102/)
      yield* Deferred.succeed(server.open, undefined)
      const text = (yield* closed).replaceAll(probe, "")
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 404"])
    }),
  )

  it.live("has the response to its complete request, behind which there was another one in part", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { until, closed } = yield* converse(server.http, infer("gate") + infer("echo").slice(0, -5), end)
      yield* until(/102/)
      yield* Deferred.succeed(server.open, undefined)
      expect((yield* closed).replaceAll(probe, "")).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"data":\[1,2\]/)
    }),
  )

  it.live.each(["1.1", "1.0"])("has all events of a stream over HTTP/%s, between which there are comments", (version) =>
    Effect.gen(function* () {
      const server = yield* serve()
      const bytes = infer("words", { version, route: "generate_stream" })
      const { until, closed } = yield* converse(server.http, bytes, end)
      yield* until(/data: .*"first"[^]*:\n\n/)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* closed).toMatch(/data: .*"first"[^]*:\n\n[^]*data: .*"second"/)
    }),
  )

  it.live("has its response over TLS", () =>
    Effect.gen(function* () {
      const { server, ca } = yield* serveTls
      const { until, closed } = yield* converse(server.http, infer("gate"), { end: true, ca })
      yield* until(/102/)
      yield* Deferred.succeed(server.open, undefined)
      expect((yield* closed).replaceAll(probe, "")).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"data":\[1,2\]/)
    }),
  )

  it.live("has its response to an RPC", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      // The first RPC of a process loads Connect, so its client may be probed meanwhile.
      const first = yield* converse(server.grpc, call("echo"), end)
      expect(yield* first.closed).toMatch(/HTTP\/1\.1 200 OK\r\n[^]*"modelName":"echo"/)
      const { until, closed } = yield* converse(server.port, call("gate"), end)
      yield* until(/102/)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* closed).toMatch(/HTTP\/1\.1 200 OK\r\n[^]*"modelName":"gate"/)
    }),
  )

  it.live("without a pending request is disconnected", () =>
    Effect.gen(function* () {
      const { http } = yield* serve()
      const { until, closed, socket } = yield* converse(http, "GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
      yield* until(/200 OK/)
      socket.end()
      yield* closed
      const silent = yield* converse(http, "", end)
      expect(yield* silent.closed).toBe("")
    }),
  )
})

describe("a client that has gone", () => {
  it.live.each([
    ["closes its socket", infer("gate"), "close"],
    ["resets its connection", infer("gate"), "reset"],
    ["closes its socket with a stream in progress", infer("words", { route: "generate_stream" }), "close"],
    ["closes its socket after half of another request", infer("gate") + "GET /v2 HT", "close"],
  ] as const)("%s: its request is cancelled", ([, bytes, how]) =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { socket } = yield* converse(server.http, bytes)
      yield* Queue.take(server.begun)
      if (how === "close") socket.destroy()
      else socket.resetAndDestroy()
      expect(yield* Queue.take(server.ended)).toBe("interrupted")
    }),
  )

  it.live("and has closed its socket over TLS: its request is cancelled", () =>
    Effect.gen(function* () {
      const { server, ca } = yield* serveTls
      const { socket } = yield* converse(server.http, infer("gate"), { ca })
      yield* Queue.take(server.begun)
      socket.destroy()
      expect(yield* Queue.take(server.ended)).toBe("interrupted")
    }),
  )

  it.live("and has sent an RPC: it is cancelled", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { socket } = yield* converse(server.grpc, call("gate"))
      yield* Queue.take(server.begun)
      socket.destroy()
      expect(yield* Queue.take(server.ended)).toBe("interrupted")
    }),
  )

  it.live("first ended its side, and later closed its socket: its request is cancelled", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { until, socket } = yield* converse(server.http, infer("gate"), end)
      yield* until(/102/)
      socket.destroy()
      expect(yield* Queue.take(server.ended)).toBe("interrupted")
    }),
  )

  it.live("over HTTP/1.0: its request is cancelled after the send timeout", () =>
    Effect.gen(function* () {
      const server = yield* serve({ sendTimeout: "50 millis" })
      const { socket } = yield* converse(server.http, infer("gate", { version: "1.0" }))
      yield* Queue.take(server.begun)
      socket.destroy()
      expect(yield* Queue.take(server.ended)).toBe("interrupted")
    }),
  )
})
