/** Hundreds of calls to grpc-js, and the problems reported for unexpected replies. */
import { status } from "@grpc/grpc-js"
import { describe, expect, it, onTestFinished } from "vitest"
import type { Address } from "../target/Address.ts"
import * as ClosedLoop from "../load/ClosedLoop.ts"
import * as Lane from "../load/Lane.ts"
import * as GrpcRequest from "./GrpcRequest.ts"
import { type RawReply, reply, serve, serveHttp2 } from "./GrpcServer.fixture.ts"
import * as GrpcUnary from "./GrpcUnary.ts"

const path = `${GrpcRequest.service}/ModelInfer`

interface LoadOptions {
  readonly messages?: readonly [Uint8Array, ...ReadonlyArray<Uint8Array>]
  readonly replyLength?: number
  readonly requests?: number
  readonly patience?: number
}

/** 16 at a time over two connections. */
const load = async (address: Address, { messages = [Buffer.from("hello")], replyLength, ...rest }: LoadOptions) => {
  const [first, ...others] = messages
  const request = (message: Uint8Array) => ({ message, replyLength })
  const target = GrpcUnary.target(address, { path, requests: [request(first), ...others.map(request)] })
  const lanes = await Lane.openAll(target, 2)
  onTestFinished(() => lanes.forEach((lane) => lane.close()))
  const measured = await ClosedLoop.run(lanes, { concurrency: 16, requests: rest.requests ?? 1, ...rest })
  return { ...measured, problems: Object.fromEntries(measured.problems.messages) }
}

describe("to grpc-js", () => {
  it("calls come back as they should", async () => {
    const seen = new Map<string, number>()
    const address = await serve({
      unary: ({ request }, callback) => {
        seen.set(request.toString(), (seen.get(request.toString()) ?? 0) + 1)
        callback(null, Buffer.from("world!"))
      },
    })
    const messages = ["one", "two", "three"].map((text) => Buffer.from(text))
    const measured = await load(address, {
      messages: [messages[0]!, ...messages.slice(1)],
      replyLength: 6,
      requests: 600,
    })
    expect(measured).toMatchObject({ requests: 600, problems: {}, reconnections: 0 })
    expect(Object.fromEntries(seen)).toEqual({ one: 200, two: 200, three: 200 })
    const { latencies, usage, seconds, perSecond } = measured
    expect(latencies.count).toBe(600)
    expect(latencies.min).toBeGreaterThan(0)
    expect(latencies.max).toBeLessThan(seconds * 1000 + 1)
    expect(perSecond).toBeCloseTo(600 / seconds)
    expect(usage.busy).toBeGreaterThan(0)
  })

  it("messages of 3 MB go both ways", async () => {
    const address = await serve({ unary: ({ request }, callback) => callback(null, request) })
    const messages = [Buffer.alloc(3_000_000, "x")] as const
    expect(await load(address, { messages, replyLength: 3_000_000, requests: 32 })).toMatchObject({
      requests: 32,
      problems: {},
    })
  })

  it("reports the code and message of a refusal", async () => {
    const address = await serve({
      unary: (_, callback) => callback({ code: status.INVALID_ARGUMENT, details: "no such input: ünknown" }),
    })
    expect(await load(address, { requests: 20 })).toMatchObject({
      requests: 0,
      problems: { "INVALID_ARGUMENT: no such input: ünknown": 20 },
    })
  })

  it("reports an unknown method", async () => {
    const { problems } = await load(await serve({ stream: (call) => call.end() }), {})
    expect(problems).toEqual({ [`UNIMPLEMENTED: The server does not implement the method ${path}`]: 1 })
  })
})

const good: Partial<RawReply> = { body: GrpcRequest.frame(Buffer.from("hello")), trailers: { "grpc-status": "0" } }

it("a reply in pieces is one reply", async () => {
  const address = await serveHttp2((stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true })
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }))
    const [first = 0, ...others] = GrpcRequest.frame(Buffer.from("hello"))
    stream.write(Buffer.of(first), () => {
      for (const byte of others) stream.write(Buffer.of(byte))
      stream.end()
    })
  })
  expect(await load(address, { replyLength: 5, requests: 10 })).toMatchObject({ requests: 10, problems: {} })
})

it.each<readonly [string, Partial<RawReply>, string]>([
  [
    "a length that differs",
    { ...good, body: GrpcRequest.frame(Buffer.from("no")) },
    "the response has 2 bytes, expected 5",
  ],
  ["no status", { ...good, trailers: { "x-status": "0" } }, "the response has no grpc-status"],
  ["no trailers", { ...good, trailers: {} }, "the response has no trailers"],
  ["another HTTP status", { ...good, status: 502 }, "HTTP status 502"],
  ["another type", { ...good, type: "text/html" }, 'content-type "text/html", which is not gRPC'],
  [
    "a compressed message",
    { ...good, body: Buffer.from("01000000056869202121", "hex") },
    "the response is compressed, but the client accepts no compression",
  ],
  ["no message", { ...good, body: Buffer.alloc(0) }, "the response ends after 0 of 0 bytes"],
  [
    "half a message",
    { ...good, body: GrpcRequest.frame(Buffer.from("hello")).subarray(0, 8) },
    "the response ends after 3 of 5 bytes",
  ],
  [
    "two messages",
    { ...good, body: Buffer.concat([1, 2].map(() => GrpcRequest.frame(Buffer.from("hello")))) },
    "the response contains more than one message",
  ],
  ["an unknown code", { ...good, trailers: { "grpc-status": "99", "grpc-message": "50%" } }, "grpc-status 99: 50%"],
])("a reply with %s is a problem", async (_, raw, problem) => {
  const address = await serveHttp2((stream) => reply(stream, raw))
  expect(await load(address, { replyLength: 5, requests: 2 })).toMatchObject({
    requests: 0,
    problems: { [problem]: 2 },
  })
})

it("reconnects to a server that closes connections", async () => {
  let count = 0
  const address = await serveHttp2((stream) => {
    if (++count % 10 === 0) stream.session?.close()
    reply(stream, good)
  })
  const measured = await load(address, { replyLength: 5, requests: 200 })
  expect(measured).toMatchObject({ requests: 200, problems: {} })
  expect(measured.reconnections).toBeGreaterThan(5)
})

it("a server that is gone is a problem of every request, and no endless loop", async () => {
  const address = await serveHttp2((stream) => stream.session?.destroy())
  const { requests, problems } = await load(address, { requests: 64 })
  expect(requests).toBe(0)
  expect(Object.values(problems).reduce((sum, count) => sum + count, 0)).toBe(64)
})

it("replies that never come are given up", async () => {
  const address = await serveHttp2(() => {})
  expect(await load(address, { requests: 5, patience: 20 })).toMatchObject({
    requests: 0,
    problems: { "no response within 0.02 s": 5 },
  })
})
