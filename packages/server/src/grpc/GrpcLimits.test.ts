/** How long, how many and how much at most: the limits of the gRPC port, over real connections. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import * as LateLoop from "../limit/LateLoop.fixture.ts"
import {
  addSub,
  closed,
  frame,
  inferFrame,
  isHealthy,
  modelInferPath,
  oneByte,
  rawCall,
  rawSession,
  seen,
  serve,
  stoppable,
} from "./GrpcServer.fixture.ts"

it.live.each([Infinity, 2 ** 31])("a stop that may take %d ms cuts nothing off", (stopTimeoutMillis) =>
  Effect.gen(function* () {
    const { server, stop } = yield* stoppable({ stopTimeoutMillis })
    const session = yield* rawSession(server)
    const inFlight = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
    yield* Queue.take(server.started)
    const stopping = yield* Effect.forkChild(stop, { startImmediately: true })
    // Timers fire in their order, and too long ones after 1 ms.
    yield* Effect.sleep(5)
    yield* Deferred.succeed(server.open, undefined)
    expect(yield* Fiber.join(inFlight)).toMatchObject({ status: "0" })
    yield* Fiber.join(stopping)
  }),
)

const endless = [
  { "grpc-timeout": "99999999H", "content-type": "application/grpc" },
  { "connect-timeout-ms": "9999999999", "content-type": "application/connect+proto" },
]

it.live.each(endless)("a stream whose deadline is longer than a timer can be goes on: %o", (headers) =>
  Effect.gen(function* () {
    const server = yield* serve()
    const session = yield* rawSession(server)
    const path = modelInferPath.replace("ModelInfer", "ModelStreamInfer")
    const chunks = [inferFrame(oneByte("gate"))]
    const call = yield* Effect.forkChild(rawCall(session, { chunks, headers: { ...headers, ":path": path } }))
    yield* Queue.take(server.started)
    // Timers fire in their order, and too long ones after 1 ms.
    yield* Effect.sleep(5)
    yield* Deferred.succeed(server.open, undefined)
    const { body } = yield* Fiber.join(call)
    expect(Buffer.from(body).toString("latin1")).toContain("gate")
  }),
)

it.live("a connection beyond the limit is closed, the others go on", () =>
  Effect.gen(function* () {
    const server = yield* serve({ maxConnections: 1 })
    const session = yield* rawSession(server)
    expect(yield* isHealthy(session)).toBe(true)
    yield* closed(yield* rawSession(server))
    expect(yield* isHealthy(session)).toBe(true)
  }),
)

it.live.each(["node", "own"] as const)("a call that was read too late ends at its headers, over http2 %s", (http2) =>
  Effect.gen(function* () {
    const { lateReading } = LateLoop.make()
    const server = yield* serve({ http2 }, { lateReading })
    const session = yield* rawSession(server)
    const headers = (timeout: string) => ({ "grpc-timeout": timeout, "content-type": "application/grpc" })
    const send = (timeout: string) => rawCall(session, { chunks: [whole], headers: headers(timeout) })
    const calls = yield* Effect.all(
      Array.from({ length: 20 }, () => send("70m")),
      { concurrency: "unbounded" },
    )
    const message = "The server has too many requests to read, and would answer this one too late"
    for (const call of calls) expect(call).toMatchObject({ status: "14", message })
    expect(yield* send("10S")).toMatchObject({ status: "0" })
  }),
)

const whole = inferFrame(addSub())

const half = frame(new Uint8Array(600), 0, 10_000)

describe("a message that does not arrive in time", () => {
  it.live("fails with a status, and closes the stream", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ receiveTimeoutMillis: 20 }))
      const response = yield* rawCall(session, { chunks: [half], last: "nothing" })
      const message = "the message did not arrive within 20 ms: 605 bytes including the prefix, expected 10005"
      expect(response).toMatchObject({ status: "4", tag: "DeadlineExceeded", message })
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )

  it.live("is cut off on Connect's path", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ receiveTimeoutMillis: 20, fastInference: false }))
      yield* rawCall(session, { chunks: [half], last: "nothing" })
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )

  it.live("a stream without any message is not concerned", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ receiveTimeoutMillis: 20 }))
      const stream = session.request({
        ":method": "POST",
        ":path": modelInferPath.replace("ModelInfer", "ModelStreamInfer"),
        "content-type": "application/grpc",
      })
      const response = Effect.callback<string>((resume) => {
        stream.on("error", () => resume(Effect.succeed("reset")))
        stream.on("data", (chunk: Buffer) => resume(Effect.succeed(chunk.toString("latin1"))))
        stream.on("close", () => resume(Effect.succeed("closed")))
      })
      const responded = yield* Effect.forkChild(response, { startImmediately: true })
      yield* seen(session)
      // Timers fire in their order.
      yield* Effect.sleep(25)
      stream.write(whole)
      expect(yield* Fiber.join(responded)).toContain("addsub")
    }),
  )

  it.live("one that arrived is not concerned, however long its answer takes", () =>
    Effect.gen(function* () {
      const server = yield* serve({ receiveTimeoutMillis: 20 })
      const session = yield* rawSession(server)
      const call = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
      yield* Queue.take(server.started)
      // Timers fire in their order.
      yield* Effect.sleep(25)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(call)).toMatchObject({ status: "0" })
    }),
  )
})

describe.each([true, false])("messages that are not whole, fastInference: %s", (fastInference) => {
  it.live("one that would exceed what all may hold fails; whole ones go on; a reset makes room", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fastInference }, { maxInFlightSize: 200_000 })
      const first = yield* rawSession(server)
      const session = yield* rawSession(server)
      const part = frame(new Uint8Array(60_000), 0, 199_000)
      yield* Effect.forkChild(rawCall(first, { chunks: [part], last: "nothing" }), { startImmediately: true })
      yield* seen(first)
      const second = Buffer.concat([part, new Uint8Array(70_000)])
      const refused = yield* rawCall(session, { chunks: [second], last: "nothing" })
      const message = expect.stringMatching(/^this connection holds \d+ bytes of this server's memory, at most 100000/)
      expect(refused).toMatchObject(fastInference ? { status: "8", tag: "QueueFull", message } : { status: undefined })
      expect(yield* isHealthy(session)).toBe(true)
      first.destroy()
      yield* closed(first)
      // The server's side of that, on which there is no other handle.
      yield* Effect.repeat(rawCall(session, { chunks: [second] }), { until: ({ status }) => status === "3" })
    }),
  )

  it.live("each gives back what it took, however it ends", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference }, { maxInFlightSize: 150_000 }))
      const pieces = [whole.subarray(0, 3), whole.subarray(3, 30), whole.subarray(30)]
      for (let index = 0; index < 30; index++) {
        expect(yield* rawCall(session, { chunks: pieces })).toMatchObject({ status: "0" })
        yield* rawCall(session, { chunks: pieces.slice(0, 2), last: "reset" })
        expect(yield* rawCall(session, { chunks: pieces.slice(0, 2) })).toMatchObject({ status: "3" })
      }
    }),
  )
})

describe.each([true, false])("while the server stops, fastInference: %s", (fastInference) => {
  it.live("a completely received message ends the receive timeout", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fastInference })
      const session = yield* rawSession(server)
      server.gateway.refuse()
      const message = "GRPC server is shutting down and has stopped accepting new requests."
      expect(yield* rawCall(session, { chunks: [whole] })).toMatchObject({ status: "14", tag: "Unavailable", message })
    }),
  )
})

it.live.each([0, -1, 1.5, NaN, 2 ** 31])("a maxMessageSize of %d is an error of the start", (maxMessageSize) =>
  Effect.gen(function* () {
    const message = `maxMessageSize is ${maxMessageSize}, expected an integer from 1 to 2147483647 (2 GiB - 1)`
    expect(yield* Effect.flip(serve({ maxMessageSize }))).toMatchObject({ _tag: "ServeError", message })
  }),
)

/** As long as a tensor of so many bytes, and what names it. */
const echo = (size: number) =>
  inferFrame(
    oneByte("echo", {
      inputs: [{ name: "X", datatype: "UINT8", shape: [BigInt(size)] }],
      rawInputContents: [new Uint8Array(size).fill(7)],
    }),
  )

describe.each([true, false])("large messages, fastInference: %s", (fastInference) => {
  // C24
  it.live.each([5_000_000, 40_000_000])("%d bytes go both ways", (size) =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference }))
      const response = yield* rawCall(session, { chunks: [echo(size)] })
      expect(response.status).toBe("0")
      expect(response.body.length).toBeGreaterThan(size)
      expect(response.body.at(-1)).toBe(7)
    }),
  )

  it.live("an answer beyond the limit fails, and the next call succeeds", () =>
    Effect.gen(function* () {
      // The version and the shape make the answer longer than the request by some bytes.
      const chunks = [echo(100_000)]
      const session = yield* rawSession(yield* serve({ fastInference, maxMessageSize: chunks[0]!.length - 5 }))
      expect(yield* rawCall(session, { chunks })).toMatchObject({ status: "8" })
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )
})
