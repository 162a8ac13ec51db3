/** The end of an HTTP/2 connection, frame by frame. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { authority } from "../../../../test/fixtures/certificate.ts"
import { closed, rawSession, serve, stoppable } from "./GrpcServer.fixture.ts"

interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

const types = { HEADERS: 1, SETTINGS: 4, PING: 6, GOAWAY: 7 }

const frame = (type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const acknowledged = 1
const endStream = 1
const endHeaders = 4

/** Headers of a call without a message, each as a literal (RFC 7541, section 6.2.2). */
const call = (id: number): Buffer => {
  const headers = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/grpc.health.v1.Health/Check",
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
  }
  const text = (value: string) => Buffer.concat([Uint8Array.of(value.length), Buffer.from(value)])
  const block = Object.entries(headers).flatMap(([name, value]) => [Uint8Array.of(0), text(name), text(value)])
  return frame(types.HEADERS, endStream | endHeaders, id, Buffer.concat(block))
}

/** A client that sends what a test tells it to, and keeps the frames that it receives. */
const client = Effect.fnUntraced(function* (open: () => Socket) {
  const frames: Array<Frame> = []
  const waiting = new Set<() => void>()
  let rest = Buffer.alloc(0)
  const socket = yield* Effect.acquireRelease(Effect.sync(open), (opened) => Effect.sync(() => opened.destroy()))
  socket.on("error", () => {})
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3)
      const received = {
        type: rest.readUInt8(3),
        flags: rest.readUInt8(4),
        stream: rest.readUInt32BE(5),
        payload: rest.subarray(9, end),
      }
      rest = rest.subarray(end)
      frames.push(received)
      if (received.type === types.SETTINGS && received.flags === 0) {
        socket.write(frame(types.SETTINGS, acknowledged, 0))
      }
    }
    for (const check of waiting) check()
  })
  const ended = Deferred.makeUnsafe<void>()
  socket.on("close", () => Deferred.doneUnsafe(ended, Effect.void))
  socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(types.SETTINGS, 0, 0)]))
  /** Waits for a frame. */
  const until = (matches: (received: Frame) => boolean) =>
    Effect.callback<Frame>((resume) => {
      const check = () => {
        const found = frames.find(matches)
        if (found === undefined) return
        waiting.delete(check)
        resume(Effect.succeed(found))
      }
      waiting.add(check)
      check()
    })
  return { socket, frames, until, ended: Deferred.await(ended) }
})

const ofType = (type: number) => (received: Frame) => received.type === type

const lastStreams = (frames: ReadonlyArray<Frame>): ReadonlyArray<number> =>
  frames.filter(ofType(types.GOAWAY)).map(({ payload }) => payload.readUInt32BE(0))

const reply = ({ payload }: Frame): Buffer => frame(types.PING, acknowledged, 0, payload)

const plain = (port: number) => client(() => connect(port, "127.0.0.1"))

/** A client whose connection is established. */
const established = Effect.fnUntraced(function* (port: number) {
  const opened = yield* plain(port)
  yield* opened.until(({ type, flags }) => type === types.SETTINGS && flags === acknowledged)
  opened.socket.write(call(1))
  yield* opened.until(({ stream, flags }) => stream === 1 && (flags & endStream) !== 0)
  return opened
})

const highest = 2 ** 31 - 1

describe("a connection that ends", () => {
  it.live("answers a call that crosses the first GOAWAY, and closes after it", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({})
      const { socket, frames, until, ended } = yield* established(server.port)
      const stopping = yield* Effect.forkChild(stop)
      const goaway = yield* until(ofType(types.GOAWAY))
      expect(goaway.payload.readUInt32BE(0)).toBe(highest)
      expect(goaway.payload.readUInt32BE(4)).toBe(0)
      expect(goaway.payload.subarray(8).toString()).toBe("stopping")
      const ping = yield* until(ofType(types.PING))
      // The client has not read the GOAWAY yet.
      socket.write(call(3))
      socket.write(reply(ping))
      yield* until(({ stream, flags }) => stream === 3 && (flags & endStream) !== 0)
      yield* ended
      expect(new Set(lastStreams(frames))).toEqual(new Set([highest, 3]))
      yield* Fiber.join(stopping)
    }),
  )

  it.live("is not yet established: its calls up to the reply are answered", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({})
      const held = yield* Effect.acquireRelease(
        Effect.sync(() => connect(server.port, "127.0.0.1")),
        (socket) => Effect.sync(() => socket.destroy()),
      )
      yield* Effect.callback<void>((resume) => void held.once("connect", () => resume(Effect.void)))
      const { until, socket, ended, frames } = yield* client(() => held)
      socket.write(call(1))
      const stopping = yield* Effect.forkChild(stop)
      yield* until(({ stream, flags }) => stream === 1 && (flags & endStream) !== 0)
      const ping = yield* until(ofType(types.PING))
      expect(frames[0]?.type).toBe(types.SETTINGS)
      socket.write(reply(ping))
      yield* ended
      yield* Fiber.join(stopping)
    }),
  )

  it.live("closes after a second if its client does not reply", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({})
      const { frames, ended } = yield* established(server.port)
      yield* stop
      yield* ended
      expect(new Set(lastStreams(frames))).toEqual(new Set([highest, 1]))
    }),
  )

  it.live("of a client with TLS gets one GOAWAY, after its reply to a ping", () =>
    Effect.gen(function* () {
      const issuer = authority()
      const { cert, key } = issuer.issue("localhost")
      const folder = mkdtempSync(join(tmpdir(), "goaway-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const tls = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") }
      writeFileSync(tls.cert, cert)
      writeFileSync(tls.key, key)
      const { server, stop } = yield* stoppable({ tls })
      const options = { port: server.port, host: "127.0.0.1", servername: "localhost", ca: issuer.cert }
      const opened = yield* client(() => connectTls({ ...options, ALPNProtocols: ["h2"] }))
      const { socket, frames, until, ended } = opened
      socket.write(call(1))
      yield* until(({ stream, flags }) => stream === 1 && (flags & endStream) !== 0)
      const stopping = yield* Effect.forkChild(stop)
      const ping = yield* until(ofType(types.PING))
      socket.write(call(3))
      socket.write(reply(ping))
      yield* until(({ stream, flags }) => stream === 3 && (flags & endStream) !== 0)
      yield* ended
      // Only node:http2 cannot send the first one through TLS.
      const isNode = process.env["NEREID_HTTP2"] === "node"
      expect(new Set(lastStreams(frames))).toEqual(new Set(isNode ? [3] : [highest, 3]))
      yield* Fiber.join(stopping)
    }),
  )

  it.live("for its age is announced once, whatever follows", () =>
    Effect.gen(function* () {
      const server = yield* serve({ keepalive: { maxConnectionAge: 20 } })
      const session = yield* rawSession(server)
      const reasons: Array<string> = []
      session.on("goaway", (_, __, data) => reasons.push(data?.toString() ?? ""))
      yield* closed(session)
      expect(new Set(reasons)).toEqual(new Set(["max_age"]))
    }),
  )
})
