/** HTTP/1.1 and HTTP/2 on the gRPC port: protocol detection, limits, and stop. */
import { Agent, request as httpRequest } from "node:http"
import { connect as connectSocket } from "node:net"
import { create, toBinary } from "@bufbuild/protobuf"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import * as fc from "fast-check"
import {
  addSub,
  closed,
  type inferFrame,
  isHealthy,
  modelInfer,
  modelInferPath,
  oneByte,
  rawSession,
  rawSocket,
  seen,
  serve,
  stoppable,
} from "./GrpcServer.fixture.ts"
import type { Limit } from "../limit/LimitReports.ts"

const livePath = "/inference.GRPCInferenceService/ServerLive"

const getLive = `GET ${livePath}?connect=v1&encoding=json&message=%7B%7D HTTP/1.1\r\nhost: x\r\n`

const last = "connection: close\r\n\r\n"

/** A request with a body, as any HTTP client sends it. */
const post = (
  port: number,
  body: ReadonlyArray<Uint8Array>,
  { headers = {}, agent }: { readonly headers?: { readonly [name: string]: string }; readonly agent?: Agent } = {},
) =>
  Effect.callback<{ readonly status: number | undefined; readonly body: string }>((resume) => {
    const request = httpRequest({
      port,
      path: modelInferPath,
      method: "POST",
      headers: { "content-type": "application/proto", ...headers },
      ...(agent && { agent }),
    })
    request.on("response", (response) => {
      const chunks: Array<Uint8Array> = []
      response.on("data", (chunk: Uint8Array) => chunks.push(chunk))
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode, body: Buffer.concat(chunks).toString() })),
      )
    })
    request.on("error", () => resume(Effect.succeed({ status: undefined, body: "" })))
    const send = (index: number): void => {
      const chunk = body[index]
      if (chunk === undefined) request.end()
      else request.write(chunk, () => send(index + 1))
    }
    send(0)
    return Effect.sync(() => request.destroy())
  })

const infer = (init: Parameters<typeof inferFrame>[0]) => toBinary(modelInfer.input, create(modelInfer.input, init))

describe("the first bytes of a connection select its protocol", () => {
  it.live("HTTP/1.1 in single bytes", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const response = yield* Effect.callback<string>((resume) => {
        let received = ""
        const socket = connectSocket({ port, host: "127.0.0.1", noDelay: true })
        const send = ([byte, ...rest]: ReadonlyArray<string>): void => {
          if (byte !== undefined) socket.write(byte, () => setImmediate(send, rest))
        }
        socket.on("connect", () => send([...getLive, ...last]))
        socket.setEncoding("utf8").on("data", (text: string) => (received += text))
        socket.on("close", () => resume(Effect.succeed(received)))
      })
      expect(response).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*{"live":true}$/)
    }),
  )

  it.live("HTTP/2 in single bytes", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      // The preface, and an empty SETTINGS frame; answered with the server's SETTINGS.
      const greeting = [...Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, 4, 0, 0, 0, 0, 0]
      const frameType = yield* Effect.callback<number | undefined>((resume) => {
        const socket = connectSocket({ port, host: "127.0.0.1", noDelay: true })
        const send = ([byte, ...rest]: ReadonlyArray<number>): void => {
          if (byte !== undefined) socket.write(new Uint8Array([byte]), () => setImmediate(send, rest))
        }
        socket.on("connect", () => send(greeting))
        socket.once("data", (chunk: Uint8Array) => {
          socket.destroy()
          resume(Effect.succeed(chunk[3]))
        })
      })
      expect(frameType).toBe(4)
    }),
  )

  it.live("both, and several requests on one connection of HTTP/1.1, at one time", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const session = yield* rawSession(server)
      const responses = yield* rawSocket(server.port, `${getLive}\r\n${getLive}${last}`)
      expect(responses.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2)
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )

  it.live.each(["", "PRI * HT"])("one that goes no further than '%s' is closed", (sent) =>
    Effect.gen(function* () {
      const { port } = yield* serve({ greetingTimeoutMillis: 20 })
      expect(yield* rawSocket(port, sent)).toBe("")
    }),
  )
})

describe("the settings of an HTTP/2 client", () => {
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  const partOfSettings = "\0\0\0\x04\0"

  it.live.each([
    ["node", preface.slice(0, 14)],
    ["node", preface],
    ["node", preface + partOfSettings],
    ["own", preface.slice(0, 14)],
    ["own", preface],
    ["own", preface + partOfSettings],
  ] as const)("must arrive in time: http2 %s, after %j", ([http2, sent]) =>
    Effect.gen(function* () {
      const limits: Array<Limit> = []
      const reports = { acted: (limit: Limit) => void limits.push(limit) }
      const server = yield* serve({ greetingTimeoutMillis: 200, http2 }, { limits: reports })
      const session = yield* rawSession(server)
      yield* rawSocket(server.port, sent)
      // It has sent its settings before the other one connected.
      expect(yield* isHealthy(session)).toBe(true)
      expect(limits).toEqual(["connection_greeting"])
    }),
  )
})

describe("over HTTP/1.1", () => {
  it.live("answers Expect: 100-continue", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const body = [infer(addSub())]
      expect(yield* post(port, body, { headers: { expect: "100-continue" } })).toMatchObject({ status: 200 })
    }),
  )

  it.live("a body that does not arrive in time is cut off", () =>
    Effect.gen(function* () {
      const server = yield* serve({ receiveTimeoutMillis: 20 })
      const head = `POST ${modelInferPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/proto\r\ncontent-length: 9\r\n\r\n`
      yield* rawSocket(server.port, `${head}1234`)
      expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
    }),
  )

  it.live("a body that would exceed what all may hold is cut off, and each gives back what it took", () =>
    Effect.gen(function* () {
      const { port } = yield* serve({}, { maxInFlightSize: 400_000 })
      const whole = infer(addSub())
      const pieces = [whole.subarray(0, 30), whole.subarray(30)]
      for (let index = 0; index < 10; index++) expect(yield* post(port, pieces)).toMatchObject({ status: 200 })
      expect(yield* post(port, [new Uint8Array(400_001)])).toMatchObject({ status: undefined })
      expect(yield* post(port, pieces)).toMatchObject({ status: 200 })
    }),
  )

  it.live("a message beyond the limit is refused", () =>
    Effect.gen(function* () {
      const { port } = yield* serve({ maxMessageSize: 1000 })
      expect(yield* post(port, [new Uint8Array(1001)])).toMatchObject({
        status: 429,
        body: expect.stringContaining("resource_exhausted"),
      })
    }),
  )

  it.live("an RPC that streams in both directions is refused", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const path = modelInferPath.replace("ModelInfer", "ModelStreamInfer")
      const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/connect+proto\r\n`
      expect(yield* rawSocket(port, `${head}content-length: 9999\r\n\r\n`)).toMatch(/^HTTP\/1\.1 505 /)
    }),
  )

  it.live("mutated requests never end the server, and none is left without an end", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const head = `POST ${livePath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc-web+proto\r\n`
      const whole = `${head}transfer-encoding: chunked\r\n${last}5\r\n\0\0\0\0\0\r\n0\r\n\r\n`
      const requests = fc.sample(
        fc.record({
          changes: fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 }),
          length: fc.nat(whole.length),
        }),
        200,
      )
      yield* Effect.forEach(
        requests,
        ({ changes, length }) => {
          const bytes = Buffer.from(whole, "latin1")
          for (const [at, value] of changes) bytes[at] = value
          return Effect.callback<void>((resume) => {
            const socket = connectSocket(server.port, "127.0.0.1", () => socket.end(bytes.subarray(0, length)))
            socket.on("error", () => {}).resume()
            socket.on("close", () => resume(Effect.void))
          })
        },
        { concurrency: 20 },
      )
      expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
    }),
  )

  it.live("a caller that goes away takes its request out of the queue", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const first = yield* Effect.forkChild(post(server.port, [infer(oneByte("gate"))]))
      yield* Queue.take(server.started)
      yield* Queue.take(server.events)
      const second = yield* Effect.forkChild(post(server.port, [infer(oneByte("gate"))]))
      expect(yield* Queue.take(server.events)).toBe("asked")
      yield* Fiber.interrupt(second)
      expect(yield* Queue.take(server.events)).toBe("cancelled")
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(first)).toMatchObject({ status: 200 })
    }),
  )

  it.live("a stop answers what is in flight, and closes what is idle at once", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({ stopTimeoutMillis: 60_000 })
      const agent = new Agent({ keepAlive: true })
      const inFlight = yield* Effect.forkChild(post(server.port, [infer(oneByte("gate"))], { agent }))
      yield* Queue.take(server.started)
      // A silent connection, one after an HTTP/1.1 response, and one of HTTP/2.
      const silent = yield* Effect.forkChild(rawSocket(server.port, ""))
      const replied = yield* Deferred.make<void>()
      const idle = yield* Effect.forkChild(
        rawSocket(server.port, `${getLive}\r\n`, () => Deferred.doneUnsafe(replied, Effect.void)),
      )
      yield* Deferred.await(replied)
      const session = yield* rawSession(server)
      yield* seen(session)
      const stopping = yield* Effect.forkChild(stop, { startImmediately: true })
      expect(yield* Fiber.join(silent)).toBe("")
      expect(yield* Fiber.join(idle)).toContain("200 OK")
      yield* closed(session)
      expect(stopping.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(inFlight)).toMatchObject({ status: 200 })
      yield* Fiber.join(stopping)
      agent.destroy()
    }),
  )

  it.live("a stop cuts off a caller that never ends its request", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({ stopTimeoutMillis: 50 })
      const head = `POST ${modelInferPath} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n`
      const entered = yield* Deferred.make<void>()
      const call = yield* Effect.forkChild(
        rawSocket(server.port, head, () => Deferred.doneUnsafe(entered, Effect.void)),
      )
      yield* Deferred.await(entered)
      yield* stop
      yield* Fiber.join(call)
    }),
  )
})
