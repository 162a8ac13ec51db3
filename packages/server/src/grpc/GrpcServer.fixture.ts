/**
 * Fixture of the gRPC tests: a few models behind a real socket, each kind of client as a function, and raw HTTP/2 for
 * malformed requests.
 */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2"
import { connect as connectSocket } from "node:net"
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf"
import { ConnectError, type Transport } from "@connectrpc/connect"
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node"
import * as grpc from "@grpc/grpc-js"
import { Deferred, Effect, Exit, Layer, Queue, Scope } from "effect"
import { Model, Tensor } from "@nereid/core"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { GRPCInferenceService, type ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import * as Gateway from "../gateway/Gateway.ts"
import { connection, type Connection } from "./GrpcClient.fixture.ts"
import * as GrpcServer from "./GrpcServer.ts"

export class AddSub extends Model.Service<AddSub>()("addsub", {
  inputs: { A: Tensor.INT32(4), B: Tensor.INT32(4) },
  outputs: { SUM: Tensor.INT32(4), DIFFERENCE: Tensor.INT32(4) },
  maxBatchSize: 8,
}) {}

/** Any number of bytes, as they came. */
class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.UINT8("n") },
  outputs: { X: Tensor.UINT8("n") },
}) {}

/** Answers when the test opens it. */
class Gate extends Model.Service<Gate>()("gate", {
  inputs: { X: Tensor.UINT8(1) },
  outputs: { X: Tensor.UINT8(1) },
  maxBatchSize: 1,
  batching: { maxQueueSize: 1 },
}) {}

class Faulty extends Model.Service<Faulty>()("faulty", {
  inputs: { X: Tensor.UINT8(1) },
  outputs: { X: Tensor.UINT8(1) },
}) {}

/** "asked": a request has reached the queue. "cancelled": its client has cancelled it. */
export type Event = "asked" | "cancelled"

export const serve = Effect.fnUntraced(function* (
  options: Partial<GrpcServer.GrpcServerOptions> = {},
  gatewayOptions: Partial<Parameters<typeof Gateway.make>[1]> = {},
) {
  const events = yield* Queue.unbounded<Event>()
  const started = yield* Queue.unbounded<void>()
  const open = yield* Deferred.make<void>()
  const models = Layer.mergeAll(
    Model.batch(AddSub, ({ A, B }) =>
      Effect.succeed({
        SUM: Tensor.make(
          "INT32",
          A.shape,
          A.data.map((a, index) => a + (B.data[index] ?? 0)),
        ),
        DIFFERENCE: Tensor.make(
          "INT32",
          A.shape,
          A.data.map((a, index) => a - (B.data[index] ?? 0)),
        ),
      }),
    ),
    Model.each(Echo, ({ X }) => Effect.succeed({ X })),
    Model.batch(Gate, ({ X }) =>
      Queue.offer(started, undefined).pipe(Effect.andThen(Deferred.await(open)), Effect.as({ X })),
    ),
    Model.each(Faulty, () => Effect.fail(new Error("the handler's own text: 100 % – naïve\n"))),
  )
  const services = yield* Layer.build(models)
  const [addSub, echo, gate, faulty] = yield* Effect.all([AddSub, Echo, Gate, Faulty]).pipe(
    Effect.provideContext(services),
  )
  const registry = ModelStore.of([addSub, echo, gate, faulty].map(({ model }) => model))
  const inner = Gateway.make(registry, { id: "nereid", version: "0", ...gatewayOptions })
  const gateway: Gateway.Gateway = {
    ...inner,
    infer: (wire, deadline, reply) => {
      if (wire.id === "defect") throw new Error("a defect that the test asked for")
      let responded = false
      const cancel = inner.infer(wire, deadline, (outcome) => {
        responded = true
        reply(outcome)
      })
      Queue.offerUnsafe(events, "asked")
      return () => {
        cancel()
        if (!responded) Queue.offerUnsafe(events, "cancelled")
      }
    },
  }
  const server = yield* GrpcServer.make(gateway, { host: "127.0.0.1", port: 0, stopTimeoutMillis: 1_000, ...options })
  return {
    ...server,
    gateway,
    gate: gate.model,
    events,
    /** Takes one element each time a batch has begun in the gate. */
    started,
    /** Lets all batches of the gate go. */
    open,
    authority: `http://127.0.0.1:${server.port}`,
  }
})

/** The same, with its stop in the test's hands. */
export const stoppable = Effect.fnUntraced(function* (options: Partial<GrpcServer.GrpcServerOptions>) {
  const scope = yield* Scope.make()
  const server = yield* Scope.provide(serve(options), scope)
  return { server, stop: Scope.close(scope, Exit.void) }
})

/** Outcome of a call, for any client. */
export type Outcome<O> =
  | { readonly response: O }
  | { readonly code: number; readonly message: string; readonly tag: string | undefined }

export type Call = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options?: { readonly signal?: AbortSignal },
) => Effect.Effect<Outcome<MessageShape<O>>>

const grpcJs = Effect.fnUntraced(function* ({ port }: { readonly port: number }) {
  const limits = { "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 }
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), limits)),
    (client) => Effect.sync(() => client.close()),
  )
  const call: Call = (method, request, options) =>
    Effect.callback((resume) => {
      const pending = client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: MessageShape<typeof method.input>) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, new Uint8Array(bytes)),
        create(method.input, request),
        (error, response) => {
          if (response !== undefined) return resume(Effect.succeed({ response }))
          const tag = error?.metadata.get(tagHeader)[0]?.toString()
          resume(Effect.succeed({ code: error?.code ?? 2, message: error?.details ?? "", tag }))
        },
      )
      options?.signal?.addEventListener("abort", () => pending.cancel())
    })
  return call
})

const overConnect = (make: (connection: Connection) => Transport) => (server: { readonly authority: string }) =>
  Effect.map(connection(server.authority), (shared) => {
    const transport = make(shared)
    const call: Call = (method, request, options) =>
      Effect.promise(async () => {
        try {
          const response = await transport.unary(method, options?.signal, undefined, undefined, request)
          return { response: response.message }
        } catch (reason) {
          const error = ConnectError.from(reason)
          return { code: error.code, message: error.rawMessage, tag: error.metadata.get(tagHeader) ?? undefined }
        }
      })
    return call
  })

const gzip = { sendCompression: compressionGzip, compressMinBytes: 0, acceptCompression: [compressionGzip] }

/** Every way to call; each a function from a server to calls. */
export const clients = {
  "grpc-js": grpcJs,
  gRPC: overConnect(createGrpcTransport),
  "gRPC with gzip": overConnect((shared) => createGrpcTransport({ ...shared, ...gzip })),
  "gRPC-Web": overConnect(createGrpcWebTransport),
  "gRPC-Web over HTTP/1.1": overConnect(({ baseUrl }) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  Connect: overConnect(createConnectTransport),
  "Connect over HTTP/1.1, with GET": overConnect(({ baseUrl }) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useHttpGet: true }),
  ),
  "Connect with JSON": overConnect((shared) => createConnectTransport({ ...shared, useBinaryFormat: false })),
}

type InferInit = MessageInitShape<typeof ModelInferRequestSchema>

const bytes = (values: ReadonlyArray<number>) => new Uint8Array(Int32Array.from(values).buffer)

export const addSub = (overrides: InferInit = {}): InferInit => ({
  modelName: "addsub",
  id: "1",
  inputs: [
    { name: "A", datatype: "INT32", shape: [1n, 4n] },
    { name: "B", datatype: "INT32", shape: [1n, 4n] },
  ],
  rawInputContents: [bytes([1, 2, 3, 4]), bytes([1, 1, 1, 1])],
  ...overrides,
})

export const addSubResponse = [bytes([2, 3, 4, 5]), bytes([0, 1, 2, 3])]

export const oneByte = (modelName: string, overrides: InferInit = {}): InferInit => ({
  modelName,
  inputs: [{ name: "X", datatype: "UINT8", shape: modelName === "gate" ? [1n, 1n] : [1n] }],
  rawInputContents: [new Uint8Array([7])],
  ...overrides,
})

export const { modelInfer } = GRPCInferenceService.method

export const modelInferPath = `/${GRPCInferenceService.typeName}/${modelInfer.name}`

/** A message with its prefix. */
export const frame = (message: Uint8Array, flag = 0, length = message.length): Uint8Array => {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt8(flag)
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, message])
}

export const inferFrame = (request: InferInit): Uint8Array =>
  frame(toBinary(modelInfer.input, create(modelInfer.input, request)))

export const rawSession = ({ authority }: { readonly authority: string }) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const session = connectHttp2(authority)
      session.on("error", () => {})
      return session
    }),
    (session) => Effect.sync(() => session.destroy()),
  )

export const closed = (session: ClientHttp2Session): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (session.destroyed) return resume(Effect.void)
    session.on("close", () => resume(Effect.void))
  })

/** Returns when the server has seen everything that was sent so far. */
export const seen = (session: ClientHttp2Session): Effect.Effect<void> =>
  Effect.callback((resume) => {
    session.ping(() => resume(Effect.void))
  })

/** Sends bytes over a plain socket and returns the response once it closes. `first` is called with the first chunk. */
export const rawSocket = (port: number, sent: Uint8Array | string, first: () => void = () => {}) =>
  Effect.callback<string>((resume) => {
    const received: Array<Uint8Array> = []
    const socket = connectSocket(port, "127.0.0.1", () => socket.write(sent))
    socket.on("error", () => {})
    socket.on("data", (chunk: Uint8Array) => {
      received.push(chunk)
      first()
    })
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(received).toString("latin1"))))
    return Effect.sync(() => socket.destroy())
  })

export interface RawResponse {
  readonly status: string | undefined
  readonly message: string | undefined
  readonly tag: string | undefined
  readonly body: Uint8Array
  /** Headers and trailers. */
  readonly fields: { readonly [name: string]: unknown }
}

export interface RawCall {
  readonly chunks: ReadonlyArray<Uint8Array>
  readonly headers?: { readonly [name: string]: string }
  /** Trailing event after the last chunk. Default "end". */
  readonly last?: "end" | "reset" | "nothing"
}

/** Sends a raw call and waits until its stream is closed. With `expect`, the body waits for the server's permission. */
export const rawCall = (session: ClientHttp2Session, { chunks, headers, last = "end" }: RawCall) =>
  Effect.callback<RawResponse>((resume) => {
    const stream = session.request({
      ":method": "POST",
      ":path": modelInferPath,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    })
    const body: Array<Uint8Array> = []
    let fields: { readonly [name: string]: unknown } = {}
    const field = (name: string) => (typeof fields[name] === "string" ? fields[name] : undefined)
    stream.on("error", () => {})
    stream.on("response", (headers) => (fields = { ...fields, ...headers }))
    stream.on("trailers", (trailers) => (fields = { ...fields, ...trailers }))
    stream.on("data", (chunk: Uint8Array) => body.push(chunk))
    stream.on("close", () => {
      const message = field("grpc-message")
      resume(
        Effect.succeed({
          status: field("grpc-status"),
          message: message && decodeURIComponent(message),
          tag: field(tagHeader),
          body: Buffer.concat(body),
          fields,
        }),
      )
    })
    const send = (index: number): void => {
      const chunk = chunks[index]
      if (chunk !== undefined) return void stream.write(chunk, () => send(index + 1))
      if (last === "end") stream.end()
      if (last === "reset") stream.close(8)
    }
    if (headers?.["expect"] === undefined) send(0)
    else stream.on("continue", () => send(0))
  })

/** Checks that the server still responds. */
export const isHealthy = Effect.fnUntraced(function* (session: ClientHttp2Session) {
  const { status, body } = yield* rawCall(session, { chunks: [inferFrame(addSub())] })
  return status === "0" && fromBinary(modelInfer.output, body.subarray(5)).rawOutputContents.length === 2
})
