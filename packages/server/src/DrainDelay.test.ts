/** A stop with `drainDelay`, and the age of HTTP/1.1 connections, on a virtual clock over real sockets. */
import { connect, type ClientHttp2Session, constants } from "node:http2"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Queue, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Model, Tensor } from "@nereid/core"
import { converse, exchange, infer, serve } from "./port/RawHttp.fixture.ts"
import * as Server from "./Server.ts"

const get = (path: string, head = "") => `GET ${path} HTTP/1.1\r\nhost: x\r\n${head}\r\n`

const ready = get("/v2/health/ready", "connection: close\r\n")

/** A server in a scope, whose stop has a delay of 10 seconds. */
const delayed = Effect.fnUntraced(function* () {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Effect.forkDetach(Scope.close(scope, Exit.void)))
  const server = yield* Scope.provide(serve({ drainDelay: "10 seconds" }), scope)
  const stop = Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
  return { ...server, stop }
})

const session = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ClientHttp2Session>((resume) => {
      const opened = connect(`http://127.0.0.1:${port}`, () => resume(Effect.succeed(opened)))
      opened.on("error", () => {})
    }),
    (opened) => Effect.sync(() => opened.destroy()),
  )

/** Status of a request over HTTP/2. */
const status = (opened: ClientHttp2Session, path: string) =>
  Effect.callback<number>((resume) => {
    const stream = opened.request({ ":path": path })
    stream.on("response", (headers) => resume(Effect.succeed(Number(headers[constants.HTTP2_HEADER_STATUS]))))
    stream.resume().end()
  })

const goaway = (opened: ClientHttp2Session) => {
  const received = Deferred.makeUnsafe<string>()
  opened.once("goaway", (code, _, reason) =>
    Deferred.doneUnsafe(received, Effect.succeed(`${code} ${reason?.toString()}`)),
  )
  return Deferred.await(received)
}

const isRefused = (port: number) => Effect.map(exchange(port, ready), (text) => text === "")

describe("during drainDelay", () => {
  it.effect("the server is not ready, and each response over HTTP/1.1 closes its connection", () =>
    Effect.gen(function* () {
      const { http, port, stop } = yield* delayed()
      expect(yield* exchange(http, ready)).toContain("200 OK")
      const early = yield* converse(http, infer("echo"))
      expect(yield* early.until(/\[1,2\]/)).not.toMatch(/connection: close/i)
      const stopping = yield* stop
      expect(yield* exchange(http, ready)).toContain("400 Bad Request")
      early.socket.write(infer("echo"))
      expect(yield* early.closed).toMatch(/200 OK.*200 OK.*connection: close.*\[1,2\]/is)
      for (const late of [http, port]) {
        expect(yield* exchange(late, infer("echo"))).toMatch(/200 OK.*connection: close.*\[1,2\]/is)
      }
      expect(stopping.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(stopping)
      expect(yield* isRefused(http)).toBe(true)
    }),
  )

  it.effect("an open HTTP/2 connection gets GOAWAY, and a new one is answered until the end of the delay", () =>
    Effect.gen(function* () {
      const { port, stop } = yield* delayed()
      const early = yield* session(port)
      expect(yield* status(early, "/v2/health/live")).toBe(200)
      const left = goaway(early)
      const stopping = yield* stop
      expect(yield* left).toBe("0 stopping")
      const late = yield* session(port)
      expect(yield* status(late, "/v2/health/live")).toBe(200)
      expect(yield* status(late, "/v2/models/echo/ready")).toBe(200)
      const leftLate = goaway(late)
      yield* TestClock.adjust("10 seconds")
      expect(yield* leftLate).toBe("0 stopping")
      yield* Fiber.join(stopping)
    }),
  )

  it.effect("a request in flight is answered, and its connection closes", () =>
    Effect.gen(function* () {
      const { http, begun, open, stop } = yield* delayed()
      const { closed } = yield* converse(http, infer("gate"))
      yield* Queue.take(begun)
      const stopping = yield* stop
      yield* Deferred.succeed(open, undefined)
      expect(yield* closed).toMatch(/200 OK.*connection: close.*\[1,2\]/is)
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(stopping)
    }),
  )

  it.effect("of pipelined requests, all are answered, and only the last response closes the connection", () =>
    Effect.gen(function* () {
      const { http, begun, open, stop } = yield* delayed()
      const { socket, closed } = yield* converse(http, infer("gate"))
      yield* Queue.take(begun)
      const stopping = yield* stop
      socket.write(infer("echo") + infer("words", { route: "generate_stream" }))
      yield* Queue.take(begun)
      yield* Deferred.succeed(open, undefined)
      const text = yield* closed
      expect(text.match(/200 OK/g)).toHaveLength(3)
      expect(text.match(/connection: close/gi)).toHaveLength(1)
      expect(text).toMatch(/\[1,2\].*\[1,2\].*connection: close.*first.*second/is)
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(stopping)
    }),
  )

  it.effect("a stream that had begun keeps its connection for the next request, which closes it", () =>
    Effect.gen(function* () {
      const { http, begun, open, stop } = yield* delayed()
      const { socket, until, closed } = yield* converse(http, infer("words", { route: "generate_stream" }))
      yield* until(/first/)
      yield* Queue.take(begun)
      const stopping = yield* stop
      yield* Deferred.succeed(open, undefined)
      yield* until(/second[^]*\r\n0\r\n\r\n/)
      socket.write(infer("echo"))
      expect(yield* closed).toMatch(/second.*200 OK.*connection: close.*\[1,2\]/is)
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(stopping)
    }),
  )
})

class Never extends Model.Service<Never>()("never", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { X: Tensor.FP32(2) },
}) {}

it.effect("a server that was never ready stops without the delay", () =>
  Effect.gen(function* () {
    const building = yield* Deferred.make<void>()
    const handler = Effect.andThen(Deferred.succeed(building, undefined), Effect.never)
    const ports = { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false } as const
    const layer = Server.layer([Never], { ...ports, drainDelay: "10 seconds", provide: Model.each(Never, handler) })
    const start = yield* Effect.forkChild(Layer.launch(layer), { startImmediately: true })
    yield* Deferred.await(building)
    // The virtual clock stands still.
    yield* Fiber.interrupt(start)
  }),
)

describe("maxHttpConnectionAge", () => {
  it.effect("closes an older connection after its next response, at an age that varies by 10 %", () =>
    Effect.gen(function* () {
      const { http, grpc, port } = yield* serve({ maxHttpConnectionAge: "100 seconds" })
      for (const at of [http, port, grpc]) {
        const path = at === grpc ? "/grpc.health.v1.Health/Check" : "/v2/health/live"
        const { socket, until, closed } = yield* converse(at, get(path))
        yield* until(/HTTP\/1.1 /)
        yield* TestClock.adjust("89 seconds")
        socket.write(get(path))
        expect(yield* until(/(HTTP\/1.1 .*){2}/s)).not.toMatch(/connection: close/i)
        yield* TestClock.adjust("21 seconds")
        socket.write(get(path))
        expect(yield* closed).toMatch(/(HTTP\/1.1 .*){3}connection: close/is)
      }
    }),
  )

  it.effect("must be at least a millisecond", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(Effect.scoped(serve({ maxHttpConnectionAge: 0 })))
      expect(message).toBe("maxHttpConnectionAge is 0 ms, expected at least 1 ms")
    }),
  )
})
