/** Malformed gRPC requests. The server answers with a status or drops the request, and the next call succeeds. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import * as fc from "fast-check"
import {
  addSub,
  frame,
  inferFrame,
  isHealthy,
  modelInferPath,
  oneByte,
  type RawResponse,
  type RawCall,
  rawCall,
  rawSession,
  rawSocket,
  serve,
} from "./GrpcServer.fixture.ts"

const whole = inferFrame(addSub())

const maxMessageSize = 1_000_000

const megabyte = new Uint8Array(2 ** 20)

type BrokenCase = readonly [name: string, call: RawCall, expected: Partial<RawResponse>]

const onBothPaths: ReadonlyArray<BrokenCase> = [
  ["no message", { chunks: [] }, { status: "12" }],
  ["a message cut off in its prefix", { chunks: [whole.subarray(0, 3)] }, { status: "3" }],
  ["a message cut off", { chunks: [whole.subarray(0, 30)] }, { status: "3" }],
  ["two messages at once", { chunks: [Buffer.concat([whole, whole])] }, { status: "12" }],
  ["a message beyond the limit", { chunks: [frame(new Uint8Array(8), 0, maxMessageSize + 1)] }, { status: "8" }],
  ["a compressed message without an encoding", { chunks: [frame(whole.subarray(5), 1)] }, { status: "13" }],
  ["an unknown encoding", { chunks: [whole], headers: { "grpc-encoding": "zip" } }, { status: "12" }],
  ["a timeout that is none", { chunks: [whole], headers: { "grpc-timeout": "soon" } }, { status: "3" }],
  ["a timeout of nothing", { chunks: [whole], headers: { "grpc-timeout": "0n" } }, { status: "4" }],
  ["the longest timeout", { chunks: [whole], headers: { "grpc-timeout": "99999999H" } }, { status: "0" }],
  ["an unknown RPC", { chunks: [whole], headers: { ":path": "/inference.Other/Call" } }, { status: "12" }],
  ["a reset after half a message", { chunks: [whole.subarray(0, 30)], last: "reset" }, { status: undefined }],
  ["a reset of an unknown RPC", { chunks: [whole], headers: { ":path": "/x" }, last: "reset" }, {}],
  ["a message in single bytes", { chunks: [...whole].map((byte) => new Uint8Array([byte])) }, { status: "0" }],
]

/** With the texts of the path before Connect, which also says more exactly whose fault it was. */
const beforeConnect: ReadonlyArray<BrokenCase> = [
  [
    "no message",
    { chunks: [] },
    { message: "received no message, expected exactly one in a unary call", tag: "Unsupported" },
  ],
  [
    "a message that is no protobuf",
    { chunks: [frame(new Uint8Array([255, 255, 255]))] },
    { status: "3", tag: "InvalidRequest", message: expect.stringContaining("failed to parse ModelInferRequest: ") },
  ],
  [
    "a message beyond the limit",
    { chunks: [frame(new Uint8Array(0), 0, maxMessageSize + 1)] },
    { message: "Received message larger than max (1000001 vs. 1000000)", tag: "InvalidRequest" },
  ],
  [
    "a caller that goes on after a message beyond the limit",
    { chunks: [frame(megabyte, 0, 4_000_000_000), ...Array.from({ length: 20 }, () => megabyte)], last: "nothing" },
    { status: "8" },
  ],
  [
    "a message cut off",
    { chunks: [whole.subarray(0, 30)] },
    { message: `incomplete message: 30 bytes including the prefix, expected ${whole.length}`, tag: "InvalidRequest" },
  ],
  ["an invalid flag", { chunks: [frame(whole.subarray(5), 7)] }, { status: "13", tag: "MalformedRequest" }],
  [
    "a timeout that is none",
    { chunks: [whole], headers: { "grpc-timeout": "1" } },
    { message: "invalid grpc-timeout '1'" },
  ],
]

describe.each([true, false])("fastInference: %s", (fastInference) => {
  it.live.each(fastInference ? [...onBothPaths, ...beforeConnect] : onBothPaths)("%s", ([, call, expected]) =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference, maxMessageSize }))
      expect(yield* rawCall(session, call)).toMatchObject(expected)
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )

  it.live.each(["ModelInfer", "ModelStreamInfer"])("%s: answers Expect: 100-continue", (method) =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference }))
      const headers = { expect: "100-continue", ":path": modelInferPath.replace("ModelInfer", method) }
      expect(yield* rawCall(session, { chunks: [whole], headers })).toMatchObject({ status: "0" })
    }),
  )

  it.live("a reset while the request is queued takes it out", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fastInference })
      const session = yield* rawSession(server)
      const chunks = [inferFrame(oneByte("gate"))]
      const first = yield* Effect.forkChild(rawCall(session, { chunks }))
      yield* Queue.take(server.started)
      yield* Queue.take(server.events)
      const other = yield* rawSession(server)
      yield* Effect.forkChild(rawCall(other, { chunks }))
      expect(yield* Queue.take(server.events)).toBe("asked")
      expect(server.gate.life.pending()).toBe(1)
      other.destroy()
      expect(yield* Queue.take(server.events)).toBe("cancelled")
      expect(server.gate.life.pending()).toBe(0)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(first)).toMatchObject({ status: "0" })
    }),
  )

  it.live("mutated messages never end the server", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fastInference, maxMessageSize })
      const session = yield* rawSession(server)
      const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255))
      const calls = fc.sample(
        fc.record({
          changes: fc.array(change, { maxLength: 8 }),
          length: fc.nat(whole.length),
          cut: fc.nat(whole.length),
          last: fc.constantFrom("end", "reset"),
        }),
        200,
      )
      const responses = yield* Effect.forEach(
        calls,
        ({ changes, length, cut, last }) => {
          const bytes = Buffer.from(whole)
          for (const [at, value] of changes) bytes[at] = value
          return rawCall(session, { chunks: [bytes.subarray(0, cut), bytes.subarray(cut, length)], last })
        },
        { concurrency: 20 },
      )
      expect(responses).toHaveLength(200)
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )
})

it.live("bytes that are not HTTP close only their connection", () =>
  Effect.gen(function* () {
    const server = yield* serve()
    expect(yield* rawSocket(server.port, "\0\x01\x02")).toMatch(/^HTTP\/1\.1 400 /)
    expect(yield* rawSocket(server.port, "PRI * HTTP/2.0\r\n\r\nno preface")).not.toContain("HTTP/1.1")
    expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
  }),
)

it.live.each(["", "a b", "%"])("the authority '%s' is refused, and ends nothing", (authority) =>
  Effect.gen(function* () {
    const server = yield* serve({ fastInference: false })
    const session = yield* rawSession(server)
    const headers = { ":authority": authority }
    expect(yield* rawCall(session, { chunks: [whole], headers })).toMatchObject({ status: undefined })
    const request = `GET /inference.GRPCInferenceService/ServerLive HTTP/1.1\r\nhost: ${authority}\r\nconnection: close\r\n\r\n`
    expect(yield* rawSocket(server.port, request)).toMatch(/^HTTP\/1\.1 400 /)
    expect(yield* isHealthy(session)).toBe(true)
  }),
)

it.live("a second message after a request that still runs cancels it", () =>
  Effect.gen(function* () {
    const server = yield* serve()
    const session = yield* rawSession(server)
    const chunk = inferFrame(oneByte("gate"))
    expect(yield* rawCall(session, { chunks: [chunk, chunk] })).toMatchObject({ status: "12" })
    yield* Deferred.succeed(server.open, undefined)
    expect(yield* isHealthy(session)).toBe(true)
  }),
)
