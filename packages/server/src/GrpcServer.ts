/**
 * The gRPC port: one HTTP/2 server (h2c) that takes unary ModelInfer off before Connect and leaves everything else to it.
 * Not here: what an RPC does (GrpcUnary.ts, GrpcRoutes.ts), and HTTP/1.1.
 *
 *   stream ─┬─ POST ModelInfer, application/grpc, not compressed either way ─► GrpcStream ─► GrpcUnary ─► gateway
 *           └─ everything else ─► Connect ─► GrpcRoutes ─► gateway
 *
 * Connect costs several times what the rest of a small request does; no option of it recovers that.
 */
import {
  createServer,
  type Http2Server,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2"
import { connectNodeAdapter } from "@connectrpc/connect-node"
import { Effect, type Scope } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import * as ForwardedHeaders from "./ForwardedHeaders.ts"
import type { Gateway } from "./Gateway.ts"
import * as GrpcApis from "./GrpcApis.ts"
import * as GrpcCompression from "./GrpcCompression.ts"
import * as GrpcRoutes from "./GrpcRoutes.ts"
import * as GrpcStatus from "./GrpcStatus.ts"
import { serveUnary } from "./GrpcStream.ts"
import { ReceiveBudget } from "./ReceiveBudget.ts"
import { limitReceiving } from "./ReceiveLimit.ts"
import * as RestrictedApis from "./RestrictedApis.ts"
import { ServeError } from "./ServeError.ts"
import * as Timer from "./Timer.ts"

export interface GrpcServerOptions {
  readonly host?: string
  /** 0 for any free port. */
  readonly port: number
  /** The most bytes of a message, either way. Default 256 MiB; the protocol's own limit is 2 GiB. */
  readonly maxMessageSize?: number
  /** Connections at one time; one more is closed at once. Default 10 000. */
  readonly maxConnections?: number
  /** How long a request may take to arrive completely. Default 300 s, which is also what Node gives one over HTTP. */
  readonly receiveTimeoutMillis?: number
  /** Bytes that requests hold together until they have arrived completely. Default 1 GiB, or 4 messages if that is more. */
  readonly maxIncompleteSize?: number
  /** Of the answers to inferences, where the caller accepts it. Default "none". */
  readonly responseCompression?: GrpcCompression.ResponseCompression | undefined
  /** Whether unary ModelInfer is answered before Connect. Default true; false is for comparison. */
  readonly fastUnary?: boolean
  /** Metadata that become parameters of their request, as a pattern of their names (ForwardedHeaders.ts). Default none. */
  readonly forwardHeaders?: string | undefined
  /** What answers only to those who have a secret. Default nothing. */
  readonly restrictedApis?: ReadonlyArray<RestrictedApis.Restriction> | undefined
  /** How long a stop waits for calls in flight, and for callers that do not take their answers. Default 30 s. */
  readonly stopTimeoutMillis?: number
}

export interface GrpcServer {
  readonly host: string
  readonly port: number
}

/** Bytes that a caller may send ahead, per stream and per connection: the default 64 KiB halves large tensors' rate. */
const streamWindow = 4 * 1024 * 1024
const connectionWindow = 16 * 1024 * 1024

const maxConcurrentStreams = 1024

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: GrpcServerOptions,
): Effect.fn.Return<GrpcServer, ServeError, Scope.Scope> {
  const { host = "0.0.0.0", port, stopTimeoutMillis = 30_000 } = options
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const logDefect = (defect: unknown) => void runFork(Effect.logError("The gRPC front end failed on a call", defect))
  const forward = yield* Effect.fromResult(ForwardedHeaders.make(options.forwardHeaders, "forwardHeaders.grpc"))
  const restrictedApis = yield* Effect.fromResult(RestrictedApis.make(options.restrictedApis ?? [], "grpc"))
  const server = handle(gateway, { ...options, forward, guards: restrictedApis, logDefect })
  const sessions = trackSessions(server)
  yield* Effect.acquireRelease(listen(server, host, port), () => stop(server, sessions, stopTimeoutMillis))
  const address = server.address()
  if (address === null || typeof address === "string")
    return yield* Effect.die("A TCP server has an address. This is a bug.")
  return { host: address.address, port: address.port }
})

interface HandleOptions extends GrpcServerOptions {
  readonly forward: ForwardedHeaders.ForwardedHeaders | undefined
  readonly guards: RestrictedApis.RestrictedApis
  readonly logDefect: (defect: unknown) => void
}

const handle = (gateway: Gateway, options: HandleOptions): Http2Server => {
  const { forward, guards, logDefect } = options
  const { maxMessageSize = 256 * 1024 * 1024, maxConnections = 10_000, fastUnary = true } = options
  const { responseCompression = "none", receiveTimeoutMillis = 300_000 } = options
  const { maxIncompleteSize = Math.max(2 ** 30, 4 * maxMessageSize) } = options
  const receiveBudget = new ReceiveBudget(maxIncompleteSize)
  const server = createServer({
    settings: { initialWindowSize: streamWindow, maxConcurrentStreams },
    // In MB, and counts what waits to be sent: with the default of 10 a few large answers refuse the next call.
    maxSessionMemory: 4 * Math.ceil(maxMessageSize / 1e6) + 100,
    // A client may open this many before it has read our settings, and is to try these again, not to be cut off.
    maxSessionRejectedStreams: maxConcurrentStreams * 10,
  })
  server.maxConnections = maxConnections
  const connect = connectNodeAdapter({
    routes: GrpcRoutes.make(gateway, forward),
    interceptors: [GrpcRoutes.failures(logDefect), GrpcApis.restricted(guards)],
    readMaxBytes: maxMessageSize,
    writeMaxBytes: maxMessageSize,
    requestGate: GrpcCompression.refuseUnknown,
    acceptCompression: GrpcCompression.encodings(responseCompression),
    fallback: unknownMethod,
  })
  server.on("request", (request, response) => {
    // The compatibility layer passes a stream's errors on to both, and an error without a listener ends the process.
    request.on("error", nothing)
    response.on("error", nothing)
    encodeReadably(response)
    limitReceiving(request, receiveTimeoutMillis, receiveBudget)
    GrpcCompression.restrict(request.headers, request.url, responseCompression)
    connect(request, response)
  })
  server.on("sessionError", nothing)
  if (!fastUnary) return server

  // Whom inference is restricted for, Connect tells, with its interceptors.
  const guard = guards("inference")
  const permits = (headers: IncomingHttpHeaders) => guard === undefined || guard.permits(headers[guard.header])

  // The compatibility layer is node's own listener of `stream`; what is not ours is handed on to it.
  const isPlain = responseCompression === "none" ? isPlainModelInfer : isUncompressedModelInfer
  const compatible = server.listeners("stream")
  server.removeAllListeners("stream")
  const unary = { gateway, maxMessageSize, receiveTimeoutMillis, receiveBudget, forward, logDefect }
  server.on("stream", (stream: ServerHttp2Stream, headers, ...rest) => {
    if (isPlain(headers) && permits(headers)) serveUnary(stream, headers, unary)
    else for (const listener of compatible) listener.call(server, stream, headers, ...rest)
  })
  return server
}

const modelInferPath = `/${GRPCInferenceService.typeName}/${GRPCInferenceService.method.modelInfer.name}`

const isPlainModelInfer = (headers: IncomingHttpHeaders): boolean => {
  if (headers[":path"] !== modelInferPath || headers[":method"] !== "POST") return false
  const encoding = headers["grpc-encoding"]
  return (
    (encoding === undefined || encoding === "identity") &&
    /^application\/grpc(\+proto)?(;|$)/.test(headers["content-type"] ?? "")
  )
}

const isUncompressedModelInfer = (headers: IncomingHttpHeaders): boolean =>
  isPlainModelInfer(headers) && !GrpcCompression.isAccepted(headers)

const unknownMethod: NonNullable<Parameters<typeof connectNodeAdapter>[0]["fallback"]> = (request, response) => {
  const isGrpc = request.headers["content-type"]?.startsWith("application/grpc") === true
  const message = `unknown method ${request.url ?? ""}`
  const status = GrpcStatus.headers({ code: GrpcCode.UNIMPLEMENTED, message, tag: "Unsupported" })
  response.writeHead(isGrpc ? 200 : 404, isGrpc ? { "content-type": "application/grpc", ...status } : {})
  response.end()
}

/** Connect escapes more of a text than the specification does, and grpc-js then shows `unknown model%3A` (GrpcServer.test.ts). */
const encodeReadably = (response: Http2ServerResponse): void => {
  const addTrailers = response.addTrailers.bind(response)
  response.addTrailers = (trailers) => {
    const message = trailers["grpc-message"]
    if (typeof message !== "string") return addTrailers(trailers)
    addTrailers({ ...trailers, "grpc-message": GrpcStatus.encodeMessage(decodeURIComponent(message)) })
  }
}

const trackSessions = (server: Http2Server): ReadonlySet<ServerHttp2Session> => {
  const sessions = new Set<ServerHttp2Session>()
  server.on("session", (session) => {
    sessions.add(session)
    session.on("close", () => sessions.delete(session))
    session.setLocalWindowSize(connectionWindow)
  })
  return sessions
}

const listen = (server: Http2Server, host: string, port: number): Effect.Effect<void, ServeError> =>
  Effect.callback((resume) => {
    const onError = (error: Error) =>
      resume(Effect.fail(new ServeError({ message: `cannot listen for gRPC on ${host}:${port}: ${error.message}` })))
    server.once("error", onError)
    server.listen(port, host, () => {
      server.off("error", onError)
      resume(Effect.void)
    })
  })

/** No new connections or calls; open ones are answered. A caller that does not take its answer is cut off in the end. */
const stop = (server: Http2Server, sessions: ReadonlySet<ServerHttp2Session>, timeout: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const cutOff = () => {
      for (const session of sessions) session.destroy()
    }
    const timer = Timer.start(cutOff, timeout)
    server.close(() => {
      clearTimeout(timer)
      resume(Effect.void)
    })
    for (const session of sessions) session.close()
    return Effect.sync(() => {
      clearTimeout(timer)
      cutOff()
    })
  })

const nothing = () => {}
