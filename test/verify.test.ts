/**
 * `verify: true`: the contract against a server with another model, and against one that reports less about its
 * models.
 */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { promisify } from "node:util"
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf"
import { describe, expect, it } from "@effect/vitest"
import * as grpc from "@grpc/grpc-js"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import {
  GRPCInferenceService,
  ModelMetadataResponseSchema,
  ModelReadyResponseSchema,
} from "@nereid/protocol/grpc_service"
import { Server } from "@nereid/server"
import { Effect, Layer, Result } from "effect"

class Served extends Model.Service<Served>()("m", {
  inputs: {
    X: Tensor.FP32(3),
    N: Tensor.INT64("n"),
    O: Tensor.optional(Tensor.BYTES(1)),
    D: Tensor.optional(Tensor.scalar("FP32"), { default: 1 }),
  },
  outputs: { Y: Tensor.FP32(3), MORE: Tensor.FP16(-1) },
  maxBatchSize: 8,
}) {}

/** Declares fewer tensors. */
class Narrower extends Model.Service<Narrower>()("m", {
  inputs: { N: Tensor.INT64(2), X: Tensor.FP32(3), O: Tensor.BYTES(1) },
  outputs: { Y: Tensor.FP32("any") },
  maxBatchSize: 4,
}) {}

class Other extends Model.Service<Other>()("m", {
  inputs: { X: Tensor.FP32("any"), O: Tensor.BYTES(1), Z: Tensor.scalar("INT8") },
  outputs: { Y: Tensor.FP64(3), LOST: Tensor.FP32(1) },
}) {}

class Absent extends Model.Service<Absent>()("absent", { inputs: {}, outputs: { Y: Tensor.FP64(3) } }) {}

class Broken extends Model.Service<Broken>()("broken", { inputs: {}, outputs: { Y: Tensor.FP64(3) } }) {}

const models = Layer.mergeAll(
  Model.each(Served, () =>
    Effect.succeed({
      Y: Tensor.make("FP32", [3], new Float32Array(3)),
      MORE: Tensor.make("FP16", [0], new Float16Array(0)),
    }),
  ),
  Model.orUnavailable(Broken, Layer.effect(Broken, Effect.fail(new Error("out of order")))),
)

const server = Server.layer([Served, Broken], { http: 0, grpc: 0, metrics: false }).pipe(Layer.provide(models))

const outcome = <M>(layer: Layer.Layer<M, Client.InvalidUrl | Client.VerificationError>) =>
  Layer.build(layer).pipe(
    Effect.scoped,
    Effect.result,
    Effect.map((result) => (Result.isFailure(result) ? result.failure : "verified")),
  )

describe.each(["http", "grpc"] as const)("over %s", (protocol) => {
  const url = Effect.map(Server.Server, (server) => `${protocol}://127.0.0.1:${server[protocol]?.port}`)

  it.effect("a contract that is narrower than what is served is verified", () =>
    Effect.gen(function* () {
      expect(yield* outcome(Client.layer(Served, { url: yield* url, verify: true }))).toBe("verified")
      expect(yield* outcome(Client.layer(Narrower, { url: yield* url, verify: true, version: 1 }))).toBe("verified")
    }).pipe(Effect.provide(server)),
  )

  it.effect("every difference is named", () =>
    Effect.gen(function* () {
      const error = yield* outcome(Client.layer(Other, { url: yield* url, verify: true }))
      expect(error).toBeInstanceOf(Client.ContractMismatch)
      expect((error as Client.ContractMismatch).message.split("\n  ").slice(1)).toEqual([
        "model 'm': declared no batches, found batches of up to 8 rows",
        `input 'X': declared FP32["any"], found FP32[3]`,
        "input 'Z': declared INT8[1], but not found",
        `input 'N': not declared, but found INT64["n"]`,
        "output 'Y': declared FP64[3], found FP32[3]",
        "output 'LOST': declared FP32[1], but not found",
      ])
      expect(error).toMatchObject({
        model: "m",
        differences: [{ of: "model", kind: "batching" }, { kind: "dims" }, {}, {}, {}, {}],
      })
    }).pipe(Effect.provide(server)),
  )

  it.effect("an unknown model and a model that is not ready have separate errors", () =>
    Effect.gen(function* () {
      const options = { url: yield* url, verify: true } as const
      expect(yield* outcome(Client.layer(Absent, options))).toMatchObject({ _tag: "ModelNotFound" })
      expect(yield* outcome(Client.layer(Broken, options))).toMatchObject({ _tag: "ModelNotReady" })
      expect(yield* outcome(Client.layer(Served, { ...options, version: 9 }))).toMatchObject({ _tag: "ModelNotFound" })
    }).pipe(Effect.provide(server)),
  )

  it.effect("so is a server that is not there", () =>
    Effect.gen(function* () {
      const socket = createServer().listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(socket, "listening"))
      const { port } = socket.address() as AddressInfo
      yield* Effect.promise(() => new Promise((resolve) => socket.close(resolve)))
      const error = yield* outcome(Client.layer(Served, { url: `${protocol}://127.0.0.1:${port}`, verify: true }))
      expect(error).toMatchObject({ _tag: "Unavailable", message: expect.stringContaining(`127.0.0.1:${port}`) })
    }),
  )

  it.effect("without Effect it rejects, and goes on where all is well", () =>
    Effect.gen(function* () {
      const options = { url: yield* url, verify: true } as const
      const rejected = yield* Effect.promise(() => Client.connect(Other, options).catch((error: unknown) => error))
      expect(rejected).toMatchObject({ _tag: "ContractMismatch", model: "m" })
      const response = yield* Effect.promise(async () => {
        await using client = await Client.connect(Narrower, options)
        return await client.infer({
          X: Tensor.make("FP32", [3], new Float32Array(3)),
          N: Tensor.make("INT64", [2], new BigInt64Array(2)),
          O: Tensor.make("BYTES", [1], [new Uint8Array()]),
        })
      })
      expect(response.Y.shape).toEqual([3])
    }).pipe(Effect.provide(server)),
  )
})

/** A server of another make: what it answers, by path; 404 for all else. */
const other = (responses: Readonly<Record<string, unknown>>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer(({ url = "" }, response) => {
          const reply = responses[url]
          if (reply === undefined) response.writeHead(404, { "content-type": "text/html" }).end("<html>")
          else response.writeHead(200).end(typeof reply === "string" ? reply : JSON.stringify(reply))
        })
        server.listen(0, "127.0.0.1")
        await once(server, "listening")
        return server
      }),
      (server) => Effect.promise(() => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve)))),
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/models`,
  )

const metadata = {
  name: "m",
  versions: [],
  platform: "",
  inputs: [
    { name: "X", datatype: "FP32", shape: [-1, 3], parameters: { content_type: "np" } },
    { name: "N", datatype: "INT64", shape: [-1, -1] },
    { name: "O", datatype: "BYTES", shape: [-1, 1] },
  ],
  outputs: [{ name: "Y", datatype: "FP32", shape: [-1, 3] }],
}

it.effect("of a server without configuration, what is known is compared", () =>
  Effect.gen(function* () {
    const url = yield* other({ "/models/v2/models/m": metadata, "/models/v2/models/m/ready": "" })
    expect(yield* outcome(Client.layer(Narrower, { url, verify: true }))).toBe("verified")
    const error = yield* outcome(Client.layer(Other, { url, verify: true }))
    expect((error as Client.ContractMismatch).differences).toContainEqual({
      of: "input",
      name: "X",
      kind: "dims",
      declared: `FP32["any"]`,
      found: "FP32[-1,3]",
    })
  }),
)

it.effect("an invalid metadata response is an error", () =>
  Effect.gen(function* () {
    const url = yield* other({ "/models/v2/models/m": "<html>", "/models/v2/models/m/ready": "" })
    const error = yield* outcome(Client.layer(Narrower, { url, verify: true }))
    expect(error).toMatchObject({
      _tag: "ExecutionFailed",
      message: expect.stringContaining("cannot decode the server's metadata of 'm'"),
    })
  }),
)

/** A unary RPC of the service, as grpc-js defines it. */
const rpc = <I extends DescMessage, O extends DescMessage>({ name, input, output }: DescMethodUnary<I, O>) => ({
  path: `/inference.GRPCInferenceService/${name}`,
  requestStream: false as const,
  responseStream: false as const,
  requestSerialize: (message: MessageShape<I>) => Buffer.from(toBinary(input, message)),
  requestDeserialize: (bytes: Buffer) => fromBinary(input, bytes),
  responseSerialize: (message: MessageShape<O>) => Buffer.from(toBinary(output, message)),
  responseDeserialize: (bytes: Buffer) => fromBinary(output, bytes),
})

it.effect("over gRPC, a server that knows no RPC for the configuration", () =>
  Effect.gen(function* () {
    const { modelMetadata, modelReady } = GRPCInferenceService.method
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => new grpc.Server()),
      (server) => Effect.sync(() => server.forceShutdown()),
    )
    server.addService(
      { modelMetadata: rpc(modelMetadata), modelReady: rpc(modelReady) },
      {
        modelMetadata: (_: unknown, reply: grpc.sendUnaryData<unknown>) =>
          reply(null, fromJson(ModelMetadataResponseSchema, metadata, { ignoreUnknownFields: true })),
        modelReady: (_: unknown, reply: grpc.sendUnaryData<unknown>) =>
          reply(null, create(ModelReadyResponseSchema, { ready: true })),
      },
    )
    const port = yield* Effect.promise(() =>
      promisify(server.bindAsync.bind(server))("127.0.0.1:0", grpc.ServerCredentials.createInsecure()),
    )
    const url = `grpc://127.0.0.1:${port}`
    expect(yield* outcome(Client.layer(Narrower, { url, verify: true }))).toBe("verified")
    const error = yield* outcome(Client.layer(Other, { url, verify: true }))
    expect(error).toMatchObject({
      _tag: "ContractMismatch",
      differences: expect.arrayContaining([expect.objectContaining({ name: "Z", kind: "missing" })]),
    })
  }),
)

const restriction = { apis: ["model-config"], key: "key", value: "secret" } as const

it.effect("a server that keeps its configuration to itself is compared by its metadata", () =>
  Effect.gen(function* () {
    const { http, grpc } = yield* Server.Server
    for (const url of [`http://127.0.0.1:${http?.port}`, `grpc://127.0.0.1:${grpc?.port}`]) {
      expect(yield* outcome(Client.layer(Served, { url, verify: true }))).toBe("verified")
      const headers = { key: "secret", "triton-grpc-protocol-key": "secret" }
      const other = yield* outcome(Client.layer(Other, { url, verify: true, headers }))
      expect((other as Client.ContractMismatch).differences[0]).toMatchObject({ kind: "batching" })
    }
  }).pipe(
    Effect.provide(
      Server.layer([Served, Broken], {
        http: 0,
        grpc: 0,
        metrics: false,
        restrictedApis: { http: [restriction], grpc: [restriction] },
      }).pipe(Layer.provide(models)),
    ),
  ),
)

it.live("a server that does not answer has only so much time", () =>
  Effect.gen(function* () {
    const server = createServer(() => {}).listen(0, "127.0.0.1")
    yield* Effect.promise(() => once(server, "listening"))
    const { port } = server.address() as AddressInfo
    const error = yield* outcome(Client.layer(Narrower, { url: `http://127.0.0.1:${port}`, verify: true, timeout: 20 }))
    expect(error).toMatchObject({
      _tag: "DeadlineExceeded",
      message: `127.0.0.1:${port} did not respond within 20 ms`,
    })
    server.closeAllConnections()
    yield* Effect.promise(() => new Promise((resolve) => server.close(resolve)))
  }),
)
