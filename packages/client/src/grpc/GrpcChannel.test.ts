/**
 * The gRPC client against a scripted server, which can behave like servers of other vendors. test/client-server.test.ts
 * covers the client with our own server.
 */
import { once } from "node:events"
import {
  constants,
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2"
import type { AddressInfo } from "node:net"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { Code, ConnectError, createClient } from "@connectrpc/connect"
import { expect, it, onTestFinished, vi } from "vitest"
import * as Model from "@nereid/core/Model"
import { retryAfter as retryAfterOf } from "@nereid/core/internal/error/InferenceError"
import * as Tensor from "@nereid/core/Tensor"
import {
  GRPCInferenceService,
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  ServerMetadataResponseSchema,
} from "@nereid/protocol/grpc_service"
import * as Client from "../Client.ts"

class Double extends Model.Service<Double>()("double", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { Y: Tensor.scalar("FP32") },
}) {}

type Handler = (stream: ServerHttp2Stream, body: Promise<Buffer>, headers: IncomingHttpHeaders) => unknown

const serve = async (handler: Handler, port = 0) => {
  const sessions = new Set<Http2Session>()
  const server = createServer()
  server.on("session", (session) => {
    sessions.add(session)
    session.on("close", () => sessions.delete(session))
    session.on("error", () => {})
  })
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {})
    const chunks: Array<Buffer> = []
    const { promise, resolve } = Promise.withResolvers<Buffer>()
    stream.on("data", (chunk: Buffer) => chunks.push(chunk))
    stream.on("end", () => resolve(Buffer.concat(chunks).subarray(5)))
    void handler(stream, promise, headers)
  })
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  const bound = (server.address() as AddressInfo).port
  return {
    url: `grpc://127.0.0.1:${bound}`,
    port: bound,
    sessions,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close")
      server.close()
      for (const session of sessions) session.destroy()
      await closed
    },
  }
}

const framed = (message: Uint8Array, length = message.length, flag = 0) => {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, message])
}

const response = (y: number, change: MessageInitShape<typeof ModelInferResponseSchema> = {}) =>
  toBinary(
    ModelInferResponseSchema,
    create(ModelInferResponseSchema, {
      modelName: "double",
      outputs: [{ name: "Y", datatype: "FP32", shape: [1n] }],
      rawOutputContents: [new Uint8Array(Float32Array.of(y).buffer)],
      ...change,
    }),
  )

const respond = (
  stream: ServerHttp2Stream,
  body: Uint8Array,
  trailers: IncomingHttpHeaders = { "grpc-status": "0" },
) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true })
  stream.on("wantTrailers", () => stream.sendTrailers(trailers))
  stream.end(body)
}

/** The outcome of one call to a server that handles it so. */
const outcome = async (handler: Handler, options: Partial<Client.ClientOptions> = {}) => {
  await using server = await serve(handler)
  await using client = await Client.connect(Double, { url: server.url, ...options })
  return await client.infer({ X: 2 }).then(
    ({ Y }) => Y,
    (error: { readonly _tag: string; readonly message: string }) =>
      `${error._tag}: ${error.message.replace(String(server.port), "PORT")}`,
  )
}

it.each([
  ["1500", 1500],
  ["-1", undefined],
  ["soon", undefined],
])("a refusal has a retry delay: a pushback of %s", async (pushback, retryAfter) => {
  await using server = await serve((stream) =>
    stream.respond(
      {
        ":status": 200,
        "content-type": "application/grpc",
        "grpc-status": "14",
        "grpc-message": "full",
        "nereid-error": "QueueFull",
        "grpc-retry-pushback-ms": pushback,
      },
      { endStream: true },
    ),
  )
  await using client = await Client.connect(Double, { url: server.url })
  const error: unknown = await client.infer({ X: 2 }).catch((error: unknown) => error)
  expect(error).toMatchObject({ _tag: "QueueFull", message: "full" })
  expect(retryAfterOf(Object(error))).toBe(retryAfter)
})

it("sends the request as raw tensors and reads the reply", async () => {
  let sent: unknown
  let timeout: unknown
  const result = await outcome(
    async (stream, body, headers) => {
      const { id, modelName, modelVersion, inputs, rawInputContents } = fromBinary(ModelInferRequestSchema, await body)
      sent = [id, modelName, modelVersion, inputs[0]?.shape, [...(rawInputContents[0] ?? [])]]
      timeout = [headers["grpc-timeout"], headers["authorization"], headers[":path"]]
      respond(stream, framed(response(4)))
    },
    { timeout: "1 hour", headers: { Authorization: "Bearer x" }, version: 3 },
  )
  expect(result).toBe(4)
  expect(sent).toEqual(["", "double", "3", [1n], [0, 0, 0, 64]])
  expect(timeout).toEqual([expect.stringMatching(/^\d{7}m$/), "Bearer x", "/inference.GRPCInferenceService/ModelInfer"])
})

it("reads typed contents as some other servers send them", async () => {
  const output = { name: "Y", datatype: "FP32", shape: [1n], contents: { fp32Contents: [8] } }
  const body = response(0, { outputs: [output], rawOutputContents: [] })
  expect(await outcome((stream) => respond(stream, framed(body)))).toBe(8)
})

it("puts a message together that comes byte by byte", async () => {
  const result = await outcome(async (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true })
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }))
    for (const byte of framed(response(4))) await new Promise((resolve) => stream.write(Buffer.of(byte), resolve))
    stream.end()
  })
  expect(result).toBe(4)
})

it.each<[string, Handler, string]>([
  [
    "a tag names the error",
    (stream) =>
      respond(stream, Buffer.alloc(0), { "grpc-status": "14", "grpc-message": "full", "nereid-error": "QueueFull" }),
    "QueueFull: full",
  ],
  [
    "an unknown tag does not",
    (stream) => respond(stream, Buffer.alloc(0), { "grpc-status": "5", "grpc-message": "no m", "nereid-error": "Odd" }),
    "ModelNotFound: no m",
  ],
  [
    "headers alone can be the answer",
    (stream) =>
      stream.respond(
        { ":status": 200, "content-type": "application/grpc", "grpc-status": "3", "grpc-message": "b%C3%B6se" },
        { endStream: true },
      ),
    "InvalidRequest: böse",
  ],
  [
    "an HTTP status without a gRPC status",
    (stream) => {
      stream.respond({ ":status": 503, "content-type": "text/html" })
      stream.end("<h1>no</h1>")
    },
    "Unavailable: the server answered with HTTP status 503",
  ],
  [
    "a page",
    (stream) => {
      stream.respond({ ":status": 200, "content-type": "text/html" })
      stream.end("<h1>hello</h1>")
    },
    `ExecutionFailed: the server answered with content-type "text/html", not application/grpc`,
  ],
  [
    "no trailers",
    (stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" })
      stream.end(framed(response(4)))
    },
    "Unavailable: the server ended the response without a status",
  ],
  ["no message", (stream) => respond(stream, Buffer.alloc(0)), "ExecutionFailed: the server sent no complete message"],
  [
    "half a message",
    (stream) => respond(stream, framed(response(4), 1000)),
    "ExecutionFailed: the server sent no complete message",
  ],
  [
    "two messages",
    (stream) => respond(stream, Buffer.concat([framed(response(4)), framed(response(4))])),
    "ExecutionFailed: the server sent more than one message",
  ],
  [
    "a compressed message",
    (stream) => respond(stream, framed(response(4), undefined, 1)),
    "ExecutionFailed: the server sent a compressed message, but the client accepts no compression",
  ],
  [
    "a message above the limit",
    (stream) => respond(stream, framed(Buffer.alloc(2000))),
    "ExecutionFailed: the reply has 2000 bytes, but maxResponseSize is 1000",
  ],
  [
    "bytes that are no message",
    (stream) => respond(stream, framed(Buffer.from([255, 255, 255]))),
    "ExecutionFailed: cannot decode the server's response: ",
  ],
  [
    "tensors without contents",
    (stream) => respond(stream, framed(response(4, { rawOutputContents: [] }))),
    "ExecutionFailed: output 'Y' of model 'double' in the server's response: expected 4 bytes for FP32[1], got 0",
  ],
  [
    "more contents than tensors",
    (stream) => respond(stream, framed(response(4, { outputs: [] }))),
    "ExecutionFailed: cannot decode the server's response: 0 outputs have 1 raw contents",
  ],
  [
    "a reset",
    (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    "ExecutionFailed: the server reset the call with HTTP/2 error code 2",
  ],
  [
    "a cancel by the server",
    (stream) => stream.close(constants.NGHTTP2_CANCEL),
    "Cancelled: the server reset the call with HTTP/2 error code 8",
  ],
  [
    "refused again and again",
    (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM),
    "Unavailable: the server reset the call with HTTP/2 error code 7",
  ],
  [
    "a lost connection",
    (stream) => stream.session?.destroy(),
    "Unavailable: the connection to 127.0.0.1:PORT was lost",
  ],
])("%s", async (_, handler, expected) => {
  const result = await outcome(handler, { maxResponseSize: 1000 })
  expect(String(result).slice(0, expected.length)).toBe(expected)
})

it("a call that was refused, and so not processed, is sent once more", async () => {
  let calls = 0
  const result = await outcome((stream) => {
    if (++calls === 1) stream.close(constants.NGHTTP2_REFUSED_STREAM)
    else respond(stream, framed(response(4)))
  })
  expect(result).toBe(4)
})

it("a server that is not there is Unavailable, with its address", async () => {
  const { url, port, ...server } = await serve(() => {})
  await server[Symbol.asyncDispose]()
  await using client = await Client.connect(Double, { url })
  await expect(client.infer({ X: 1 })).rejects.toMatchObject({
    _tag: "Unavailable",
    message: expect.stringContaining(`cannot reach 127.0.0.1:${port}: connect ECONNREFUSED`),
  })
})

it("keeps its deadline where the server does not answer, and resets the call", async () => {
  const reset = Promise.withResolvers<number>()
  const arrived = Promise.withResolvers<void>()
  await using server = await serve((stream) => {
    arrived.resolve()
    stream.on("close", () => reset.resolve(stream.rstCode ?? 0))
  })
  await using client = await Client.connect(Double, { url: server.url })
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  onTestFinished(() => void vi.useRealTimers())
  const call = expect(client.infer({ X: 1 }, { timeout: "20 seconds", id: "7" })).rejects.toMatchObject({
    _tag: "DeadlineExceeded",
    message: "[request id: 7] Deadline Exceeded",
  })
  await arrived.promise
  vi.advanceTimersByTime(20_000)
  await call
  expect(await reset.promise).toBe(constants.NGHTTP2_CANCEL)
})

it("an aborted signal rejects with its reason and resets the call", async () => {
  const reset = Promise.withResolvers<number>()
  const arrived = Promise.withResolvers<void>()
  await using server = await serve((stream) => {
    arrived.resolve()
    stream.on("close", () => reset.resolve(stream.rstCode ?? 0))
  })
  await using client = await Client.connect(Double, { url: server.url })
  const controller = new AbortController()
  const call = client.infer({ X: 1 }, { signal: controller.signal })
  void arrived.promise.then(() => controller.abort(new Error("enough")))
  await expect(call).rejects.toThrow("enough")
  expect(await reset.promise).toBe(constants.NGHTTP2_CANCEL)
  await expect(client.infer({ X: 1 }, { signal: controller.signal })).rejects.toThrow("enough")
})

it("after GOAWAY, calls in flight end on the old session and new ones go to a new one", async () => {
  const held = Promise.withResolvers<ServerHttp2Stream>()
  let calls = 0
  await using server = await serve((stream) => {
    if (++calls === 1) held.resolve(stream)
    else respond(stream, framed(response(4)))
  })
  await using client = await Client.connect(Double, { url: server.url })
  const first = client.infer({ X: 1 })
  const stream = await held.promise
  stream.session?.goaway()
  let second: { readonly Y: number } | undefined
  // The next call may be on its way before the GOAWAY has arrived; sooner or later one goes to the new session.
  while (server.sessions.size < 2) second = await client.infer({ X: 1 })
  expect(second).toEqual({ Y: 4 })
  respond(stream, framed(response(2)))
  expect(await first).toEqual({ Y: 2 })
})

it("more calls than the server takes at a time wait for their turn, and a waiting one can be cancelled", async () => {
  const streams: Array<ServerHttp2Stream> = []
  const arrived = Promise.withResolvers<void>()
  await using server = await serve((stream) => {
    streams.push(stream)
    if (streams.length === 100) arrived.resolve()
    if (streams.length > 100) respond(stream, framed(response(4)))
  })
  await using client = await Client.connect(Double, { url: server.url })
  const controller = new AbortController()
  const calls = Array.from({ length: 150 }, (_, index) =>
    client.infer({ X: 1 }, index === 149 ? { signal: controller.signal } : {}),
  )
  const last = expect(calls.pop()).rejects.toThrow("aborted")
  await arrived.promise
  controller.abort()
  await last
  for (const stream of streams) respond(stream, framed(response(4)))
  expect(await Promise.all(calls)).toHaveLength(149)
})

it("more calls than maxInFlight are refused", async () => {
  const arrived = Promise.withResolvers<ServerHttp2Stream>()
  await using server = await serve((stream) => arrived.resolve(stream))
  await using client = await Client.connect(Double, { url: server.url, maxInFlight: 1 })
  const first = client.infer({ X: 1 })
  await expect(client.infer({ X: 1 })).rejects.toMatchObject({
    _tag: "QueueFull",
    message: "[request id: <id_unknown>] 1 calls are in flight, the maxInFlight of this client",
  })
  respond(await arrived.promise, framed(response(4)))
  expect(await first).toEqual({ Y: 4 })
})

it("closing the client ends waiting calls, and later ones, with Unavailable", async () => {
  const arrived = Promise.withResolvers<void>()
  await using server = await serve(() => arrived.resolve())
  const client = await Client.connect(Double, { url: server.url })
  const call = expect(client.infer({ X: 1 })).rejects.toMatchObject({ _tag: "Unavailable" })
  await arrived.promise
  await client.close()
  await call
  await expect(client.infer({ X: 1 })).rejects.toMatchObject({
    _tag: "Unavailable",
    message: `the client of 127.0.0.1:${server.port} is closed`,
  })
  await client.close()
})

it("Connect's typed client works on the transport", async () => {
  await using server = await serve(async (stream, body, headers) => {
    await body
    if (headers[":path"]?.endsWith("ServerMetadata") === true) {
      const message = create(ServerMetadataResponseSchema, { name: "other", version: "2" })
      respond(stream, framed(toBinary(ServerMetadataResponseSchema, message)))
    } else if (headers[":path"]?.endsWith("ServerLive") === true) {
      respond(stream, Buffer.alloc(0), { "grpc-status": "5", "grpc-message": "gone", "nereid-error": "ModelNotFound" })
    }
  })
  await using transport = Client.transport({ url: server.url })
  const client = createClient(GRPCInferenceService, transport)
  expect(await client.serverMetadata({})).toMatchObject({ name: "other", version: "2" })
  const missing = await client.serverLive({}).catch(ConnectError.from)
  expect(missing).toMatchObject({ code: Code.NotFound, rawMessage: "gone" })
  expect((missing as ConnectError).metadata.get("nereid-error")).toBe("ModelNotFound")
  await expect(client.serverReady({}, { timeoutMs: 20 })).rejects.toMatchObject({ code: Code.DeadlineExceeded })
  const controller = new AbortController()
  const ready = client.serverReady({}, { signal: controller.signal })
  controller.abort()
  await expect(ready).rejects.toMatchObject({ code: Code.Canceled })
  const stream = client.modelStreamInfer((async function* () {})())
  await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: Code.Unimplemented })
})
