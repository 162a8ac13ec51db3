/** Compressed messages over real connections: which requests are read, and which answers are compressed. C29. */
import { brotliCompressSync, brotliDecompressSync, deflateSync, gunzipSync, gzipSync, inflateSync } from "node:zlib"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { createClient } from "@connectrpc/connect"
import { createConnectTransport } from "@connectrpc/connect-node"
import { describe, expect, it } from "@effect/vitest"
import * as grpc from "@grpc/grpc-js"
import { Effect } from "effect"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import {
  addSub,
  addSubResponse,
  frame,
  isHealthy,
  modelInfer,
  modelInferPath,
  oneByte,
  rawCall,
  rawSession,
  serve,
} from "./GrpcServer.fixture.ts"
import { connection } from "./GrpcClient.fixture.ts"

const encodings = {
  gzip: { compress: gzipSync, decompress: gunzipSync },
  deflate: { compress: deflateSync, decompress: inflateSync },
  br: { compress: brotliCompressSync, decompress: brotliDecompressSync },
}

const everyEncoding = Object.entries(encodings)

const message = (request: Parameters<typeof addSub>[0]) => toBinary(modelInfer.input, create(modelInfer.input, request))

const size = 100_000

/** Compresses well, but not to the same length at all levels. */
const tensor = Uint8Array.from({ length: size }, (_, index) => ((index * index) % 251) ^ (index >> 9))

const large = message(
  oneByte("echo", {
    inputs: [{ name: "X", datatype: "UINT8", shape: [BigInt(size)] }],
    rawInputContents: [tensor],
  }),
)

const outputsOf = (response: Uint8Array) => fromBinary(modelInfer.output, new Uint8Array(response)).rawOutputContents

/** Of 100,000 bytes, which takes `toEqual` long. */
const hasTensor = (response: Uint8Array) => Buffer.compare(outputsOf(response)[0] ?? new Uint8Array(0), tensor) === 0

/** Headers of grpc-js and Python, for any request. */
const accepting = { "grpc-accept-encoding": "identity,deflate,gzip" }

const notCompressed = { status: "0", fields: expect.not.objectContaining({ "grpc-encoding": expect.anything() }) }

describe.each(everyEncoding)("a request compressed with %s", (encoding, { compress }) => {
  const headers = { "grpc-encoding": encoding, ...accepting }

  it.live.each(["none", "high"] as const)("is answered, with the response compression %s", (responseCompression) =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ responseCompression }))
      const response = yield* rawCall(session, { chunks: [frame(compress(message(addSub())), 1)], headers })
      // Below the length from which it is worth it.
      expect(response).toMatchObject({ status: "0", body: expect.objectContaining({ 0: 0 }) })
      expect(outputsOf(response.body.subarray(5))).toEqual(addSubResponse)
    }),
  )

  it.live("may have messages that are not", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve())
      const response = yield* rawCall(session, { chunks: [frame(message(addSub()))], headers })
      expect(outputsOf(response.body.subarray(5))).toEqual(addSubResponse)
    }),
  )

  it.live("has the limit of its size after decompression", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ maxMessageSize: 50_000 }))
      const bomb = compress(new Uint8Array(10_000_000))
      expect(bomb.length).toBeLessThan(50_000)
      expect(yield* rawCall(session, { chunks: [frame(bomb, 1)], headers })).toMatchObject({
        status: "8",
        tag: "InvalidRequest",
        message: "Received message larger than max (more than 50000 vs. 50000)",
      })
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )

  it.live("reports it if not", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve())
      const broken = new Uint8Array(20).fill(7)
      for (const bytes of [broken, compress(large).subarray(0, 500)]) {
        expect(yield* rawCall(session, { chunks: [frame(bytes, 1)], headers })).toMatchObject({
          status: "3",
          tag: "InvalidRequest",
          message: expect.stringContaining(`failed to decompress the ${encoding} message of ${bytes.length} bytes: `),
        })
      }
      expect(yield* isHealthy(session)).toBe(true)
    }),
  )

  it.live("many at once are all answered", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve())
      const chunks = [frame(compress(large), 1)]
      const calls = Array.from({ length: 30 }, () => rawCall(session, { chunks, headers }))
      for (const response of yield* Effect.all(calls, { concurrency: "unbounded" })) expect(response.status).toBe("0")
    }),
  )
})

it.live("an unknown encoding is refused with those that are known", () =>
  Effect.gen(function* () {
    const session = yield* rawSession(yield* serve())
    const headers = { "grpc-encoding": "snappy", ...accepting }
    expect(yield* rawCall(session, { chunks: [frame(large, 1)], headers })).toMatchObject({
      status: "12",
      tag: "Unsupported",
      message: "unknown grpc-encoding 'snappy', expected one of gzip, deflate, br",
      fields: { "grpc-accept-encoding": "identity,gzip,deflate,br" },
    })
  }),
)

describe("without response compression", () => {
  it.live.each([true, false])("no answer is compressed, fastInference: %s", (fastInference) =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference }))
      const plain = yield* rawCall(session, { chunks: [frame(large)], headers: accepting })
      expect(plain).toMatchObject(notCompressed)
      expect(hasTensor(plain.body.subarray(5))).toBe(true)
      // Without grpc-accept-encoding, the response would have the encoding of the request.
      for (const more of [{}, accepting]) {
        const headers = { "grpc-encoding": "gzip", ...more }
        const response = yield* rawCall(session, { chunks: [frame(gzipSync(large), 1)], headers })
        expect(response).toMatchObject(notCompressed)
        expect(hasTensor(response.body.subarray(5))).toBe(true)
      }
    }),
  )

  it.live("nor over the Connect protocol", () =>
    Effect.gen(function* () {
      const { authority } = yield* serve()
      let encoding: string | null = ""
      const transport = createConnectTransport(yield* connection(authority))
      const client = createClient(GRPCInferenceService, transport)
      const request = fromBinary(modelInfer.input, large)
      const onHeader = (header: Headers) => (encoding = header.get("content-encoding"))
      const response = yield* Effect.promise(() => client.modelInfer(request, { onHeader }))
      expect(response.rawOutputContents[0]?.length).toBe(size)
      expect(encoding).toBe(null)
    }),
  )
})

describe("with response compression", () => {
  const sizes = Effect.forEach(["low", "medium", "high"] as const, (responseCompression) =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ responseCompression }))
      const responses = yield* Effect.forEach(everyEncoding, ([encoding, { decompress }]) =>
        Effect.gen(function* () {
          const headers = { "grpc-accept-encoding": encoding }
          const response = yield* rawCall(session, { chunks: [frame(large)], headers })
          expect(response).toMatchObject({ status: "0", fields: { "grpc-encoding": encoding } })
          expect(response.body[0]).toBe(1)
          expect(hasTensor(decompress(response.body.subarray(5)))).toBe(true)
          return response.body.length
        }),
      )
      return responses.reduce((sum, length) => sum + length, 0)
    }),
  )

  it.live("an answer is compressed with what the caller accepts, the more the higher the level", () =>
    Effect.gen(function* () {
      const [low = 0, medium = 0, high = 0] = yield* sizes
      expect(low).toBeLessThan(3 * size)
      expect(medium).toBeLessThan(low)
      expect(high).toBeLessThan(medium)
    }),
  )

  it.live("no answer is, to a caller that does not accept it", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ responseCompression: "medium" }))
      const compressed = { chunks: [frame(gzipSync(large), 1)], headers: { "grpc-encoding": "gzip" } }
      for (const call of [
        { chunks: [frame(large)] },
        { chunks: [frame(large)], headers: { "grpc-accept-encoding": "identity" } },
        { chunks: [frame(large)], headers: { "grpc-accept-encoding": "snappy" } },
        compressed,
      ]) {
        const response = yield* rawCall(session, call)
        expect(response).toMatchObject(notCompressed)
        expect(hasTensor(response.body.subarray(5))).toBe(true)
      }
    }),
  )

  it.live("no answer is, to a call that is not an inference", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ responseCompression: "medium" }))
      const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
      // file_containing_symbol, of a file that is longer than 1 KiB.
      const name = new TextEncoder().encode(GRPCInferenceService.typeName)
      const nameField = Buffer.concat([Uint8Array.of(0x22, name.length), name])
      const response = yield* rawCall(session, { chunks: [frame(nameField)], headers: { ...accepting, ":path": path } })
      expect(response).toMatchObject(notCompressed)
      expect(response.body.length).toBeGreaterThan(5000)
    }),
  )
})

describe("grpc-js", () => {
  const algorithms = { deflate: 1, gzip: 2 }

  it.live.each(Object.entries(algorithms))("compresses with %s, and reads answers that are", ([, algorithm]) =>
    Effect.gen(function* () {
      const { port } = yield* serve({ responseCompression: "low" })
      const client = yield* Effect.acquireRelease(
        Effect.sync(
          () =>
            new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
              "grpc.default_compression_algorithm": algorithm,
            }),
        ),
        (client) => Effect.sync(() => client.close()),
      )
      const response = yield* Effect.callback<Buffer>((resume) => {
        const same = (bytes: Uint8Array) => Buffer.from(bytes)
        client.makeUnaryRequest(modelInferPath, same, same, Buffer.from(large), (error, bytes) =>
          resume(error || bytes === undefined ? Effect.die(error) : Effect.succeed(bytes)),
        )
      })
      expect(hasTensor(response)).toBe(true)
    }),
  )
})
