/** Connections that are dead, that ping too much or that are old. C29. */
import type { ClientHttp2Session } from "node:http2"
import { connect as connectSocket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import type { Limit } from "../limit/LimitReports.ts"
import type { Keepalive } from "./Keepalive.ts"
import {
  addSub,
  clients,
  closed,
  inferFrame,
  isHealthy,
  modelInfer,
  oneByte,
  rawCall,
  rawSession,
  serve,
} from "./GrpcServer.fixture.ts"

const ping = (session: ClientHttp2Session) =>
  Effect.callback<boolean>((resume) => {
    if (session.destroyed) return resume(Effect.succeed(false))
    const send = () => session.ping((error) => resume(Effect.succeed(error === null)))
    if (session.connecting) session.once("connect", send)
    else send()
  })

/** Waits for the GOAWAY of a connection. */
const goaway = (session: ClientHttp2Session) => {
  const received = Deferred.makeUnsafe<{ readonly code: number; readonly reason: string }>()
  session.once("goaway", (code, _, data) =>
    Deferred.doneUnsafe(received, Effect.succeed({ code, reason: data?.toString() ?? "" })),
  )
  return Deferred.await(received)
}

/** The pings that come from the server, each as an element. */
const pingsOf = (session: ClientHttp2Session) => {
  const pings = Effect.runSync(Queue.unbounded<void>())
  session.on("ping", () => Queue.offerUnsafe(pings, undefined))
  return pings
}

/** HTTP/2 connection preface, with empty settings. */
const preface = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Uint8Array.of(0, 0, 0, 4, 0, 0, 0, 0, 0),
])

/** The codes of all GOAWAYs among these frames. */
const goawayCodes = (frames: Buffer): ReadonlyArray<number> => {
  if (frames.length < 9) return []
  const length = frames.readUIntBE(0, 3)
  const others = goawayCodes(frames.subarray(9 + length))
  return frames[3] === 7 ? [frames.readUInt32BE(13), ...others] : others
}

const enhanceYourCalm = { code: 11, reason: "too_many_pings" }

describe("pings of the server", () => {
  it.live("go to connections with a call in flight, and those that reply stay", () =>
    Effect.gen(function* () {
      const server = yield* serve({ keepalive: { time: 5, timeout: 1000, maxPingsWithoutData: 0 } })
      const idle = yield* rawSession(server)
      const idlePings = pingsOf(idle)
      const session = yield* rawSession(server)
      const pings = pingsOf(session)
      const call = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
      yield* Queue.takeN(pings, 5)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(call)).toMatchObject({ status: "0" })
      expect(yield* Queue.size(idlePings)).toBe(0)
    }),
  )

  it.live("go to idle connections too, if that is wanted", () =>
    Effect.gen(function* () {
      const keepalive = { time: 5, timeout: 1000, maxPingsWithoutData: 0, permitWithoutCalls: true }
      const session = yield* rawSession(yield* serve({ keepalive }))
      yield* Queue.takeN(pingsOf(session), 5)
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )

  it.live("are few where nothing else is sent", () =>
    Effect.gen(function* () {
      const keepalive = { time: 5, timeout: 1000, permitWithoutCalls: true }
      const server = yield* serve({ keepalive })
      const session = yield* rawSession(server)
      const pings = pingsOf(session)
      yield* Queue.takeN(pings, 2)
      // Time for many more: this one began later.
      const other = yield* serve({ keepalive: { ...keepalive, maxPingsWithoutData: 5 } })
      yield* Queue.takeN(pingsOf(yield* rawSession(other)), 5)
      expect(yield* Queue.size(pings)).toBe(0)
      expect(yield* isHealthy(session)).toBe(true)
      yield* Queue.takeN(pings, 2)
    }),
  )

  it.live("close a connection that does not answer", () =>
    Effect.gen(function* () {
      // Longer than a busy machine keeps the other caller from answering.
      const server = yield* serve({ keepalive: { time: 5, timeout: 200, permitWithoutCalls: true } })
      yield* Effect.callback<void>((resume) => {
        const socket = connectSocket(server.port, "127.0.0.1", () => {
          // This, and nothing from then on.
          socket.write(preface)
        })
        socket.on("error", () => {})
        socket.resume()
        socket.on("close", () => resume(Effect.void))
      })
      expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
    }),
  )
})

describe("pings of a caller", () => {
  it.live("that come too often end its connection", () =>
    Effect.gen(function* () {
      const limits: Array<Limit> = []
      const server = yield* serve({}, { limits: { acted: (limit) => limits.push(limit) } })
      const session = yield* rawSession(server)
      const received = yield* Effect.forkChild(goaway(session), { startImmediately: true })
      let responded = 0
      while (yield* ping(session)) responded += 1
      expect(yield* Fiber.join(received)).toEqual(enhanceYourCalm)
      // One allowed ping, two strikes, and the tolerance at the start of the connection.
      expect(responded).toBeGreaterThanOrEqual(3)
      expect(responded).toBeLessThanOrEqual(4)
      yield* closed(session)
      expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
      expect(limits).toEqual(["pings"])
    }),
  )

  it.live("that come too often: no later GOAWAY has another reason", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const received = yield* Effect.callback<Buffer>((resume) => {
        const frames: Array<Buffer> = []
        const socket = connectSocket(server.port, "127.0.0.1")
        const pings = Array.from({ length: 10 }, () => Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
        socket.write(Buffer.concat([preface, ...pings]))
        socket.on("data", (data: Buffer) => frames.push(data))
        socket.on("error", () => {})
        socket.on("close", () => resume(Effect.succeed(Buffer.concat(frames))))
      })
      expect(new Set(goawayCodes(received))).toEqual(new Set([enhanceYourCalm.code]))
    }),
  )

  it.live("end the calls on it as well, at once where the calls alone do not permit them", () =>
    Effect.gen(function* () {
      const server = yield* serve({ keepalive: { maxPingStrikes: 1 } })
      const session = yield* rawSession(server)
      const call = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
      yield* Queue.take(server.started)
      expect(yield* Queue.take(server.events)).toBe("asked")
      while (yield* ping(session));
      yield* Fiber.join(call)
      expect(yield* Queue.take(server.events)).toBe("cancelled")
    }),
  )

  it.live("may come as often as data is sent between", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ keepalive: { maxPingStrikes: 1 } }))
      for (let round = 0; round < 20; round++) {
        expect(yield* isHealthy(session)).toBe(true)
        expect(yield* ping(session)).toBe(true)
      }
    }),
  )

  it.live("may come at the interval while there are calls", () =>
    Effect.gen(function* () {
      const server = yield* serve({ keepalive: { minReceiveInterval: 0 } })
      const session = yield* rawSession(server)
      const call = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
      yield* Queue.take(server.started)
      for (let round = 0; round < 20; round++) expect(yield* ping(session)).toBe(true)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(call)).toMatchObject({ status: "0" })
      const received = yield* Effect.forkChild(goaway(session), { startImmediately: true })
      while (yield* ping(session));
      expect(yield* Fiber.join(received)).toEqual(enhanceYourCalm)
    }),
  )

  it.live.each([{ minReceiveInterval: 0, permitWithoutCalls: true }, { maxPingStrikes: 0 }])(
    "may come at any time with %j",
    (keepalive) =>
      Effect.gen(function* () {
        const session = yield* rawSession(yield* serve({ keepalive }))
        for (let round = 0; round < 20; round++) expect(yield* ping(session)).toBe(true)
      }),
  )
})

describe("a connection that is too old", () => {
  it.live("takes no new calls, and closes when those in flight are answered", () =>
    Effect.gen(function* () {
      const server = yield* serve({ keepalive: { maxConnectionAge: 20 } })
      const session = yield* rawSession(server)
      const received = yield* Effect.forkChild(goaway(session), { startImmediately: true })
      const call = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
      yield* Queue.take(server.started)
      expect(yield* Fiber.join(received)).toEqual({ code: 0, reason: "max_age" })
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(call)).toMatchObject({ status: "0" })
      yield* closed(session)
    }),
  )

  it.live("is cut off when their time is over", () =>
    Effect.gen(function* () {
      const server = yield* serve({ keepalive: { maxConnectionAge: 20, maxConnectionAgeGrace: 20 } })
      const session = yield* rawSession(server)
      const call = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
      yield* closed(session)
      expect(yield* Fiber.join(call)).toMatchObject({ status: undefined })
    }),
  )

  it.live("is replaced by its client, who loses no call", () =>
    Effect.gen(function* () {
      // Long enough that a busy machine does not expire the next connection before the refused call is retried on it;
      // grpc-js retries once.
      const server = yield* serve({ keepalive: { maxConnectionAge: 200 } })
      const call = yield* clients["grpc-js"](server)
      const responses = yield* Effect.forEach(Array.from({ length: 1000 }), () => call(modelInfer, addSub()), {
        concurrency: 4,
      })
      expect(responses.filter((response) => !("response" in response))).toEqual([])
    }),
  )
})

it.live.each<readonly [keepalive: Keepalive, message: string]>([
  [{ time: 0 }, "keepalive.time is 0, expected at least 1"],
  [{ timeout: -5 }, "keepalive.timeout is -5, expected at least 1"],
  [{ maxConnectionAge: 0 }, "keepalive.maxConnectionAge is 0, expected at least 1"],
  [{ maxPingStrikes: NaN }, "keepalive.maxPingStrikes is NaN, expected at least 0"],
])("%j is an error of the start", ([keepalive, message]) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(serve({ keepalive }))
    expect(error).toMatchObject({ _tag: "ServeError", message })
  }),
)
