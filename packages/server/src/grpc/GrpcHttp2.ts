/**
 * HTTP/2 on the gRPC port: takes unary ModelInfer off before Connect and leaves everything else to it. Not here: the port
 * (GrpcServer.ts), and what an RPC does (GrpcUnary.ts, GrpcRoutes.ts).
 *
 *   stream ─┬─ POST ModelInfer, application/grpc, not compressed either way ─► GrpcStream ─► GrpcUnary ─► gateway
 *           └─ everything else ─► GrpcConnect ─► GrpcRoutes ─► gateway
 *
 * Connect costs several times what the rest of a small request does; no option of it recovers that.
 */
import {
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import * as GrpcCompression from "./GrpcCompression.ts"
import * as Goaway from "./Goaway.ts"
import { serveUnary, type StreamOptions } from "./GrpcStream.ts"
import type { Http2 } from "../port/HttpListener.ts"
import * as Keepalive from "./Keepalive.ts"
import type { RestrictedApis } from "../RestrictedApis.ts"

/** Bytes that a caller may send ahead, per stream and per connection: the default 64 KiB halves large tensors' rate. */
const streamWindow = 4 * 1024 * 1024
const connectionWindow = 16 * 1024 * 1024

const maxConcurrentStreams = 1024

export type Answer = (request: Http2ServerRequest, response: Http2ServerResponse) => void

export interface Http2Options extends StreamOptions {
  readonly restrictedApis: RestrictedApis
  readonly responseCompression: GrpcCompression.ResponseCompression
  readonly keepalive: Keepalive.Settings
  /** Whether unary ModelInfer is answered before Connect. */
  readonly fastUnary: boolean
  /** Answers everything else. */
  readonly answer: Answer
}

export const make = (options: Http2Options): Http2 => {
  // It never listens: the port accepts its connections.
  const server = createServer({
    settings: { initialWindowSize: streamWindow, maxConcurrentStreams },
    // In MB, and counts what waits to be sent: with the default of 10 a few large answers refuse the next call.
    maxSessionMemory: 4 * Math.ceil(options.maxMessageSize / 1e6) + 100,
    // A client may open this many before it has read our settings, and is to try these again, not to be cut off.
    maxSessionRejectedStreams: maxConcurrentStreams * 10,
  })
  server.on("request", options.answer)
  server.on("checkContinue", options.answer)
  server.on("sessionError", nothing)
  if (options.fastUnary) takeUnary(server, options)
  const sessions = trackSessions(server, options.keepalive)
  return {
    accept: (socket) => {
      // As with a server of HTTP/2 alone: a caller that has ended its side is gone. One of HTTP/1.1 accepts it otherwise.
      socket.allowHalfOpen = false
      server.emit("connection", socket)
    },
    drain: () => {
      for (const session of sessions) Goaway.gracefully(session, "stopping")
    },
    cutOff: () => {
      for (const session of sessions) session.destroy()
    },
  }
}

const takeUnary = (server: Http2Server, options: Http2Options): void => {
  // Whom inference is restricted for, Connect tells, with its interceptors.
  const guard = options.restrictedApis("inference")
  const permits = (headers: IncomingHttpHeaders) => guard === undefined || guard.permits(headers[guard.header])
  const isPlain = options.responseCompression === "none" ? isPlainModelInfer : isUncompressedModelInfer

  // The compatibility layer is node's own listener of `stream`; what is not ours is handed on to it.
  const compatible = server.listeners("stream")
  server.removeAllListeners("stream")
  server.on("stream", (stream: ServerHttp2Stream, headers, ...rest) => {
    if (isPlain(headers) && permits(headers)) serveUnary(stream, headers, options)
    else for (const listener of compatible) listener.call(server, stream, headers, ...rest)
  })
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

const trackSessions = (server: Http2Server, keepalive: Keepalive.Settings): ReadonlySet<ServerHttp2Session> => {
  const sessions = new Set<ServerHttp2Session>()
  server.on("session", (session) => {
    sessions.add(session)
    session.on("close", () => sessions.delete(session))
    session.setLocalWindowSize(connectionWindow)
    Keepalive.watch(session, keepalive)
  })
  return sessions
}

const nothing = () => {}
