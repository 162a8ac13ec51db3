/** Clients that cancel calls: the other calls of their connection, and floods. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import type { ClientHttp2Session } from "node:http2"
import { connect } from "node:net"
import * as LimitReports from "../limit/LimitReports.ts"
import {
  addSub,
  closed,
  inferFrame,
  isHealthy,
  modelInferPath,
  oneByte,
  rawCall,
  rawSession,
  seen,
  serve,
} from "./GrpcServer.fixture.ts"

const infer = inferFrame(addSub())

/** Sends calls and cancels them at once. Completes when the server has seen them. */
const cancelCalls = (session: ClientHttp2Session, count: number, headers = {}) =>
  Effect.suspend(() => {
    for (let call = 0; call < count && !session.destroyed; call++) {
      const stream = session.request({ ":method": "POST", ":path": modelInferPath, "content-type": type, ...headers })
      stream.on("error", () => {})
      stream.write(infer)
      stream.close(8)
    }
    return session.destroyed ? Effect.void : seen(session)
  })

const type = "application/grpc"

const goaway = (session: ClientHttp2Session) =>
  Effect.callback<{ readonly code: number; readonly lastStream: number; readonly reason: string }>((resume) => {
    session.once("goaway", (code, lastStream, data) =>
      resume(Effect.succeed({ code, lastStream, reason: String(Buffer.from(data ?? [])) })),
    )
  })

it.live("calls complete beside fifty times as many that the client cancels", () =>
  Effect.gen(function* () {
    const session = yield* rawSession(yield* serve())
    for (let round = 0; round < 220; round++) {
      yield* cancelCalls(session, 50)
      expect(yield* rawCall(session, { chunks: [infer] })).toMatchObject({ status: "0" })
    }
  }),
)

/** A frame of HTTP/2 (RFC 9113, 4.1). */
const http2Frame = (type: number, flags: number, stream: number, payload: Uint8Array): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Headers as literals that enter the table (RFC 7541, 6.2.1), and as references to them (6.1). */
const literals = Buffer.concat(
  Object.entries({
    ":method": "POST",
    ":scheme": "http",
    ":path": modelInferPath,
    ":authority": "localhost",
    "content-type": type,
  }).flatMap(([name, value]) => [
    Buffer.of(0x40, name.length),
    Buffer.from(name),
    Buffer.of(value.length),
    Buffer.from(value),
  ]),
)

const references = Buffer.of(0x80 + 66, 0x80 + 65, 0x80 + 64, 0x80 + 63, 0x80 + 62)

it.live("a call is answered that arrives in one piece with 5,000 cancelled ones", () =>
  Effect.gen(function* () {
    const { port } = yield* serve()
    const cancelled = Array.from({ length: 5_000 }, (_, index) => [
      http2Frame(1, 4, 2 * index + 1, index === 0 ? literals : references),
      http2Frame(0, 0, 2 * index + 1, Buffer.of(0)),
      http2Frame(3, 0, 2 * index + 1, Buffer.of(0, 0, 0, 8)),
    ])
    const bytes = Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      http2Frame(4, 0, 0, Buffer.alloc(0)),
      ...cancelled.flat(),
      http2Frame(1, 4, 10_001, references),
      http2Frame(0, 1, 10_001, infer),
    ])
    const refused = http2Frame(3, 0, 10_001, Buffer.of(0, 0, 0, 11))
    const received = yield* Effect.callback<Buffer>((resume) => {
      let all = Buffer.alloc(0)
      const socket = connect(port, "127.0.0.1", () => void socket.write(bytes))
      socket.on("data", (chunk: Buffer) => {
        all = Buffer.concat([all, chunk])
        if (all.includes("DIFFERENCE") || all.includes(refused)) resume(Effect.succeed(all))
      })
      return Effect.sync(() => socket.destroy())
    })
    expect(received.includes("DIFFERENCE")).toBe(true)
  }),
)

it.live("calls that are cancelled at their own deadline do not count", () =>
  Effect.gen(function* () {
    const session = yield* rawSession(yield* serve())
    for (let round = 0; round < 220; round++) yield* cancelCalls(session, 50, { "grpc-timeout": "1n" })
    expect(yield* isHealthy(session)).toBe(true)
  }),
)

it.live("a flood of cancelled calls ends its connection, and a call in flight is answered first", () =>
  Effect.gen(function* () {
    const lines = yield* Queue.unbounded<string>()
    const server = yield* serve(
      { keepalive: { maxPingStrikes: 0 } },
      {
        limits: LimitReports.throttled(
          (line) => Queue.offerUnsafe(lines, line),
          () => {},
        ),
      },
    )
    const session = yield* rawSession(server)
    const inFlight = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
    yield* Queue.take(server.started)
    const ended = yield* Effect.forkChild(goaway(session), { startImmediately: true })
    const flood = yield* Effect.forkChild(Effect.forever(cancelCalls(session, 500)))
    const { code, lastStream, reason } = yield* Fiber.join(ended)
    yield* Fiber.interrupt(flood)
    expect({ code, reason }).toEqual({ code: 0, reason: "too_many_resets" })
    // A client may send calls with a higher number again, on another connection.
    expect(lastStream).toBeGreaterThan(0)
    yield* Deferred.succeed(server.open, undefined)
    expect(yield* Fiber.join(inFlight)).toMatchObject({ status: "0" })
    yield* closed(session)
    expect(yield* Queue.take(lines)).toBe(
      "Closing an HTTP/2 connection of 127.0.0.1: its client cancels far more calls than it completes",
    )
    expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
  }),
)
