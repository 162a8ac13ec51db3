/** Limits on memory that callers hold, over real sockets: bodies that do not end, and responses that are not read. */
import { connect as connectHttp2 } from "node:http2"
import { connect, type Socket } from "node:net"
import { Model, Tensor } from "@nereid/core"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { afterEach, expect, it, vi } from "@effect/vitest"
import { Effect, Queue } from "effect"
import * as Gateway from "./gateway/Gateway.ts"
import { frame, inferFrame, modelInferPath } from "./grpc/GrpcServer.fixture.ts"
import * as GrpcServer from "./grpc/GrpcServer.ts"
import * as HttpServer from "./http/HttpServer.ts"
import type { Limit } from "./limit/LimitReports.ts"

/** Responds with as many bytes as requested. */
class Zeros extends Model.Service<Zeros>()("zeros", {
  inputs: { COUNT: Tensor.scalar("INT32") },
  outputs: { X: Tensor.UINT8("n") },
}) {}

const serve = Effect.fnUntraced(function* (options: {
  readonly maxInFlightSize?: number
  readonly sendTimeoutMillis?: number
}) {
  const { maxInFlightSize = Infinity, ...listener } = options
  const limits = yield* Queue.unbounded<Limit>()
  const { model } = yield* Zeros
  const gateway = Gateway.make(ModelStore.of([model]), {
    id: "nereid",
    version: "0",
    maxInFlightSize,
    limits: { acted: (limit) => Queue.offerUnsafe(limits, limit) },
  })
  const http = yield* HttpServer.make(gateway, { host: "127.0.0.1", port: 0, stopTimeoutMillis: 100, ...listener })
  const grpc = yield* GrpcServer.make(gateway, { host: "127.0.0.1", port: 0, stopTimeoutMillis: 100, ...listener })
  return { memory: gateway.memory, limits, http, grpc }
})

const zeros = Model.each(Zeros, ({ COUNT }) =>
  Effect.succeed({ X: Tensor.make("UINT8", [COUNT], new Uint8Array(COUNT)) }),
)

const document = (count: number) =>
  JSON.stringify({
    inputs: [{ name: "COUNT", datatype: "INT32", shape: [1], data: [count] }],
    parameters: { binary_data_output: true },
  })

const post = (body: string, length = body.length) =>
  `POST /v2/models/zeros/infer HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n${body}`

const open = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
      socket.on("error", () => {})
    }),
    (socket) => Effect.sync(() => socket.destroy()),
  )

/** Returns the first bytes that arrive, as text. */
const received = (socket: Socket) =>
  Effect.callback<string>((resume) => void socket.once("data", (chunk) => resume(Effect.succeed(String(chunk)))))

const closed = (socket: Socket) =>
  Effect.callback<void>((resume) => {
    socket.on("close", () => resume(Effect.void))
    socket.resume()
  })

/** Waits until a condition of the server holds, looking after each turn of the event loop. */
const until = (condition: () => boolean) =>
  Effect.promise(() => new Promise((resolve) => setImmediate(resolve))).pipe(Effect.repeat({ until: condition }))

afterEach(() => void vi.useRealTimers())

it.live("incomplete HTTP bodies beyond the budget are refused, and the others go on", () =>
  Effect.gen(function* () {
    const { memory, limits, http } = yield* serve({ maxInFlightSize: 1_000_000 })
    const sockets = yield* Effect.all(Array.from({ length: 20 }, () => open(http.port)))
    const refusals: Array<string> = []
    for (const socket of sockets) {
      socket.once("data", (chunk) => refusals.push(String(chunk)))
      socket.write(post(" ".repeat(90_000), 90_100))
    }
    // Eleven of these bodies fit.
    yield* until(() => refusals.length >= 9)
    for (const refusal of refusals) expect(refusal).toMatch(/^HTTP\/1.1 503 Service Unavailable[^]*retry-after: 1\r/i)
    expect(memory.used).toBeLessThanOrEqual(1_000_000)
    expect(memory.used).toBeGreaterThanOrEqual(500_000)
    expect(yield* Queue.take(limits)).toBe("held_memory")
    const other = yield* open(http.port)
    other.write(post(document(3)))
    expect(yield* received(other)).toContain("HTTP/1.1 200")
    for (const socket of sockets) socket.destroy()
    yield* until(() => memory.used === 0)
  }).pipe(Effect.provide(zeros)),
)

it.live("an HTTP body that arrives at less than the minimum rate is refused", () =>
  Effect.gen(function* () {
    const { memory, limits, http } = yield* serve({})
    const socket = yield* open(http.port)
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
    socket.write(post(" ".repeat(3_000), 100_000))
    yield* until(() => memory.used === 3_000)
    vi.advanceTimersByTime(10_000)
    expect(memory.used).toBe(3_000)
    vi.advanceTimersByTime(10_000)
    const reply = yield* received(socket)
    expect(reply).toMatch(/^HTTP\/1.1 408 /)
    expect(reply).toContain("the body arrives at less than 240 bytes per second")
    expect([memory.used, yield* Queue.take(limits)]).toEqual([0, "receive_time"])
  }).pipe(Effect.provide(zeros)),
)

it.live("an HTTP response that is not read counts, and its connection closes after the send timeout", () =>
  Effect.gen(function* () {
    const { memory, limits, http } = yield* serve({ sendTimeoutMillis: 50 })
    const socket = yield* open(http.port)
    socket.pause()
    socket.write(post(document(30_000_000)))
    yield* until(() => memory.used > 30_000_000)
    expect(yield* Queue.take(limits)).toBe("send_time")
    yield* until(() => memory.used === 0)
    yield* closed(socket)
  }).pipe(Effect.provide(zeros)),
)

it.live("an HTTP response beyond the budget is refused, and a small one is not", () =>
  Effect.gen(function* () {
    const { http } = yield* serve({ maxInFlightSize: 200_000 })
    const socket = yield* open(http.port)
    socket.write(post(document(300_000)))
    const reply = yield* received(socket)
    expect(reply).toContain("HTTP/1.1 503")
    expect(reply).toContain("of this server's memory, at most 200000")
    socket.write(post(document(3)))
    expect(yield* received(socket)).toContain("HTTP/1.1 200")
  }).pipe(Effect.provide(zeros)),
)

it.live("two hundred pipelined requests are answered in their order", () =>
  Effect.gen(function* () {
    const { http } = yield* serve({})
    const socket = yield* open(http.port)
    const counts = Array.from({ length: 200 }, (_, index) => index)
    const bodies = counts.map((count) =>
      JSON.stringify({ inputs: [{ name: "COUNT", datatype: "INT32", shape: [1], data: [count] }] }),
    )
    let text = ""
    const last = `"shape":[199]`
    const done = Effect.callback<void>((resume) => {
      socket.on("data", (chunk) => {
        text += String(chunk)
        if (text.includes(last)) resume(Effect.void)
      })
    })
    socket.write(bodies.map((body) => post(body)).join(""))
    yield* done
    expect([...text.matchAll(/"shape":\[(\d+)\]/g)].map(([, count]) => Number(count))).toEqual(counts)
  }).pipe(Effect.provide(zeros)),
)

const count = (value: number) =>
  inferFrame({
    modelName: "zeros",
    inputs: [{ name: "COUNT", datatype: "INT32", shape: [1n] }],
    rawInputContents: [new Uint8Array(Int32Array.of(value).buffer)],
  })

const http2Session = (port: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 65_535 } })
      session.on("error", () => {})
      return session
    }),
    (session) => Effect.sync(() => session.destroy()),
  )

it.live.each(["application/grpc", "application/grpc-web+proto"])(
  "a response over %s that is not read counts, and its call ends after the send timeout",
  (contentType) =>
    Effect.gen(function* () {
      // Long enough to see the memory before the call ends, also on a busy machine.
      const { memory, limits, grpc } = yield* serve({ sendTimeoutMillis: 500 })
      const session = yield* http2Session(grpc.port)
      const headers = { ":method": "POST", ":path": modelInferPath, "content-type": contentType }
      const stream = session.request(headers)
      stream.on("error", () => {})
      stream.pause().end(count(30_000_000))
      yield* until(() => memory.used >= 30_000_000)
      expect(yield* Queue.take(limits)).toBe("send_time")
      yield* until(() => memory.used === 0)
      const other = session.request(headers)
      other.end(count(3))
      yield* Effect.callback<void>((resume) => void other.on("close", () => resume(Effect.void)).resume())
      expect(other.rstCode).toBe(0)
    }).pipe(Effect.provide(zeros)),
)

it.live("a gRPC response beyond the budget fails with RESOURCE_EXHAUSTED, and the next call succeeds", () =>
  Effect.gen(function* () {
    const { memory, grpc } = yield* serve({ maxInFlightSize: 200_000 })
    const session = yield* http2Session(grpc.port)
    const call = (value: number) =>
      Effect.callback<unknown>((resume) => {
        const stream = session.request({
          ":method": "POST",
          ":path": modelInferPath,
          "content-type": "application/grpc",
        })
        let status: unknown
        const note = (fields: { readonly [name: string]: unknown }) => (status = fields["grpc-status"] ?? status)
        stream.on("response", note).on("trailers", note)
        stream.on("close", () => resume(Effect.succeed(status)))
        stream.resume().end(count(value))
      })
    expect(yield* call(300_000)).toBe("8")
    expect(yield* call(3)).toBe("0")
    yield* until(() => memory.used === 0)
  }).pipe(Effect.provide(zeros)),
)

it.live("a gRPC message that arrives at less than the minimum rate fails its call", () =>
  Effect.gen(function* () {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
    const { memory, limits, grpc } = yield* serve({})
    const session = yield* http2Session(grpc.port)
    const stream = session.request({ ":method": "POST", ":path": modelInferPath, "content-type": "application/grpc" })
    const status = Effect.callback<unknown>((resume) => {
      stream.on("response", (fields) => resume(Effect.succeed(fields["grpc-message"])))
    })
    stream.write(frame(new Uint8Array(3_000), 0, 100_000))
    yield* until(() => memory.used > 3_000)
    vi.advanceTimersByTime(10_001)
    vi.advanceTimersByTime(10_001)
    expect(yield* status).toContain("less than 240 bytes per second")
    expect([memory.used, yield* Queue.take(limits)]).toEqual([0, "receive_time"])
  }).pipe(Effect.provide(zeros)),
)

it.live("open calls without a message count, and are refused as calls that were not begun", () =>
  Effect.gen(function* () {
    const { memory, limits, grpc } = yield* serve({ maxInFlightSize: 2 ** 20 })
    const session = yield* Effect.acquireRelease(
      Effect.sync(() => connectHttp2(`http://127.0.0.1:${grpc.port}`)),
      (session) => Effect.sync(() => session.destroy()),
    )
    const refused: Array<number | undefined> = []
    const streams = Array.from({ length: 300 }, () => {
      const stream = session.request({ ":method": "POST", ":path": modelInferPath, "content-type": "application/grpc" })
      return stream.on("error", () => {}).on("close", () => refused.push(stream.rstCode))
    })
    // 4 KiB each, from the 17th.
    yield* until(() => refused.length === 300 - 16 - 256)
    expect(new Set(refused)).toEqual(new Set([7]))
    expect(memory.used).toBe(2 ** 20)
    expect(yield* Queue.take(limits)).toBe("held_memory")
    for (const stream of streams) stream.close(8)
    yield* until(() => memory.used === 0)
  }).pipe(Effect.provide(zeros)),
)
