/** Refusals of gRPC servers over sockets: the client tells which of them may be repeated on another replica. */
import { once } from "node:events"
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2"
import { type AddressInfo, createServer as createSocketServer } from "node:net"
import { create, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import { ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import * as Client from "../Client.ts"

class Double extends Model.Service<Double>()("double", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { Y: Tensor.scalar("FP32") },
}) {}

const message = toBinary(
  ModelInferResponseSchema,
  create(ModelInferResponseSchema, {
    modelName: "double",
    outputs: [{ name: "Y", datatype: "FP32", shape: [1n] }],
    rawOutputContents: [new Uint8Array(Float32Array.of(4).buffer)],
  }),
)

const prefix = Buffer.alloc(5)
prefix.writeUInt32BE(message.length, 1)

type Handler = (stream: ServerHttp2Stream) => void

const respond: Handler = (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true })
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }))
  stream.end(Buffer.concat([prefix, message]))
}

const refuse =
  (status: string, more: { readonly [name: string]: string } = {}): Handler =>
  (stream) =>
    stream.respond(
      { ":status": 200, "content-type": "application/grpc", "grpc-status": status, ...more },
      { endStream: true },
    )

const serve = async (handler: Handler) => {
  const sessions = new Set<ServerHttp2Session>()
  let calls = 0
  const server = createServer()
  server.on("session", (session) => {
    sessions.add(session)
    session.on("close", () => sessions.delete(session))
    session.on("error", () => {})
  })
  server.on("stream", (stream: ServerHttp2Stream) => {
    calls += 1
    stream.on("error", () => {})
    handler(stream)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => calls,
    /** Open sessions go on. */
    stopListening: () => void server.close(),
    [Symbol.asyncDispose]: async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      for (const session of sessions) session.destroy()
      await promise
    },
  }
}

/** Calls of clients until one has reached the replica that refuses. Returns its outcome. */
const outcome = async (handler: Handler, replicas: Client.ReplicaOptions = {}) => {
  await using refusing = await serve(handler)
  await using healthy = await serve(respond)
  for (;;) {
    await using client = await Client.connect(Double, { url: [refusing.url, healthy.url], replicas })
    const result = await client.infer({ X: 2 }).then(
      ({ Y }) => Y,
      (error: { readonly _tag: string }) => error._tag,
    )
    if (refusing.calls() > 0) return result
  }
}

it("a stream that the server refuses goes to another replica", async () => {
  expect(await outcome((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM))).toBe(4)
})

it("a stream behind the GOAWAY of a server that stops goes to another replica", async () => {
  await using stopping = await serve((stream) => {
    if (stream.id === 1) return respond(stream)
    stopping.stopListening()
    stream.session?.goaway(constants.NGHTTP2_NO_ERROR, 1)
  })
  await using healthy = await serve(respond)
  await using client = await Client.connect(Double, { url: [stopping.url, healthy.url] })
  while (stopping.calls() < 2) expect(await client.infer({ X: 2 })).toEqual({ Y: 4 })
  expect(healthy.calls()).toBeGreaterThan(0)
})

it.each([
  ["a time to wait", { "grpc-retry-pushback-ms": "5" }, 4, 4],
  ["no time", {}, "Unavailable", 4],
  ["a negative time", { "grpc-retry-pushback-ms": "-1" }, "Unavailable", "Unavailable"],
])("a refusal with %s", async (_, trailers, once, idempotent) => {
  expect(await outcome(refuse("14", trailers))).toBe(once)
  expect(await outcome(refuse("14", trailers), { idempotent: true })).toBe(idempotent)
})

it("a stream that is reset, or a session that is lost, is repeated only if the model is idempotent", async () => {
  for (const handler of [
    (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    (stream: ServerHttp2Stream) => stream.session?.destroy(),
  ]) {
    expect(await outcome(handler)).toMatch(/^(Unavailable|ExecutionFailed)$/)
    expect(await outcome(handler, { idempotent: true })).toBe(4)
  }
})

it("an error of the model is final", async () => {
  expect(await outcome(refuse("13"), { idempotent: true })).toBe("ExecutionFailed")
})

it("calls that wait for a stream of a lost connection go to another replica", async () => {
  // Takes connections, and never speaks HTTP/2.
  const silent = createSocketServer((socket) => setTimeout(() => socket.destroy(), 50)).listen(0, "127.0.0.1")
  await once(silent, "listening")
  await using healthy = await serve(respond)
  const url = [`grpc://127.0.0.1:${(silent.address() as AddressInfo).port}`, healthy.url]
  await using client = await Client.connect(Double, { url, replicas: { idempotent: true } })
  const outputs = await Promise.all(Array.from({ length: 20 }, () => client.infer({ X: 2 })))
  expect(outputs.every(({ Y }) => Y === 4)).toBe(true)
  silent.close()
})
