/**
 * HTTP/2 clients that do half of what they must, with both implementations and on every kind of port: connections that
 * say nothing after the greeting, and requests that do not end after their response.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { connect as connectHttp2 } from "node:http2"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Frame from "@nereid/http2/internal/frame/Frame"
import { Flag, Type } from "@nereid/http2/internal/frame/Frame"
import { authority } from "../../../test/fixtures/certificate.ts"
import { addSub, inferFrame, modelInferPath, serve as serveGrpc } from "./grpc/GrpcServer.fixture.ts"
import * as GrpcServer from "./grpc/GrpcServer.ts"
import * as LimitReports from "./limit/LimitReports.ts"
import * as OnePort from "./OnePort.ts"

const certificates = authority()

const tlsFiles = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-half-open-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true })),
  )
  const files = { cert: join(folder, "cert"), key: join(folder, "key") }
  const { cert, key } = certificates.issue("server")
  yield* Effect.promise(() => Promise.all([writeFile(files.cert, cert), writeFile(files.key, key)]))
  return files
})

interface Kind {
  readonly http2: "node" | "own"
  readonly isShared: boolean
  readonly hasTls: boolean
}

const kinds: ReadonlyArray<readonly [name: string, Kind]> = (["own", "node"] as const).flatMap((http2) =>
  [false, true].flatMap((isShared) =>
    [false, true].map((hasTls) => {
      const name = `http2 ${http2}, ${isShared ? "shared port" : "gRPC port"}${hasTls ? ", TLS" : ""}`
      return [name, { http2, isShared, hasTls }] as const
    }),
  ),
)

const serve = Effect.fnUntraced(function* (
  { http2, isShared, hasTls }: Kind,
  greetingTimeoutMillis = 60_000,
  limits: LimitReports.LimitReports = LimitReports.none,
) {
  const { gateway } = yield* serveGrpc({}, { limits })
  const tls = hasTls ? yield* tlsFiles : undefined
  const options = { host: "127.0.0.1", port: 0, stopTimeoutMillis: 1_000, greetingTimeoutMillis, tls }
  const { port } = isShared
    ? yield* OnePort.make(gateway, { ...options, http: {}, grpc: { http2 } })
    : yield* GrpcServer.make(gateway, { ...options, http2 })
  return port
})

const open = (port: number, { hasTls }: Kind): Socket =>
  hasTls
    ? connectTls({ port, host: "127.0.0.1", ca: certificates.cert, ALPNProtocols: ["h2"] })
    : connect(port, "127.0.0.1")

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

describe.each(kinds)("%s", (_, kind) => {
  it.live.each([preface.slice(0, 14), preface, `${preface}\0\0\0\x04\0`])(
    "a connection that goes no further than %j is closed",
    (sent) =>
      Effect.gen(function* () {
        const port = yield* serve(kind, 50)
        yield* Effect.callback<void>((resume) => {
          const socket = open(port, kind)
          socket.write(sent, "latin1")
          socket.resume().on("error", () => {})
          socket.on("close", () => resume(Effect.void))
          return Effect.sync(() => socket.destroy())
        })
      }),
  )

  it.live.skipIf(kind.hasTls)("a request that does not end after its response is reset, without an error", () =>
    Effect.gen(function* () {
      const port = yield* serve(kind)
      const code = yield* Effect.callback<number>((resume) => {
        const scheme = kind.hasTls ? "https" : "http"
        const session = connectHttp2(`${scheme}://127.0.0.1:${port}`, { ca: certificates.cert })
        const stream = session.request({
          ":method": "POST",
          ":path": modelInferPath,
          "content-type": "application/grpc",
        })
        // Neither message is wanted, and the second one is never complete.
        stream.write(Buffer.concat([inferFrame(addSub()), inferFrame(addSub())]))
        stream.resume().on("error", () => {})
        stream.on("close", () => resume(Effect.succeed(stream.rstCode)))
        return Effect.sync(() => session.destroy())
      })
      expect(code).toBe(0)
    }),
  )
})

/** Beginnings of frames and header blocks that stay incomplete. */
const unfinished = [
  ["frame", Frame.encode(Type.HEADERS, Flag.END_HEADERS, 1, Buffer.alloc(100)).subarray(0, 50)],
  ["header block", Frame.encode(Type.HEADERS, Flag.END_STREAM, 1, Buffer.of(0x82))],
] as const

// node:http2 has no such limit.
describe.each(kinds.filter(([, { http2 }]) => http2 === "own"))("%s", (_, kind) => {
  it.live.each(unfinished)("a connection that does not complete a %s is closed", ([, part]) =>
    Effect.gen(function* () {
      const acted: Array<LimitReports.Limit> = []
      const port = yield* serve(kind, 50, { acted: (limit) => acted.push(limit) })
      const frames = yield* Effect.callback<Buffer>((resume) => {
        const socket = open(port, kind)
        const received: Array<Buffer> = []
        socket.write(Buffer.concat([Frame.preface, Frame.settings([]), part]))
        socket.on("data", (chunk: Buffer) => received.push(chunk)).on("error", () => {})
        socket.on("close", () => resume(Effect.succeed(Buffer.concat(received))))
        return Effect.sync(() => socket.destroy())
      })
      expect(frames.toString("latin1")).toContain("a frame or header block is not complete")
      expect(acted).toEqual(["frames"])
    }),
  )
})
