/**
 * HTTP/2 on the gRPC port, with node:http2: handles inference before Connect, and passes everything else to Connect.
 * GrpcServer.ts opens the port. UnaryCall.ts, StreamCall.ts and GrpcRoutes.ts implement the RPCs.
 *
 *   stream ─┬─ plain inference (InferenceCalls.ts) ─► NodeCallStream ─┬─► UnaryCall ──┬─► gateway
 *           │                                                         └─► StreamCall ─┘
 *           └─ everything else ─► GrpcConnect ─► GrpcRoutes ─► gateway
 *
 * Connect costs several times what the rest of a small request does; no option of it recovers that.
 */
import { constVoid } from "effect/Function"
import type { Http2Server, Http2ServerRequest, Http2ServerResponse, Http2Session, ServerHttp2Stream } from "node:http2"
import type { Socket } from "node:net"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import type { CallHandler } from "./Call.ts"
import * as Drain from "./Drain.ts"
import * as Greeting from "./Greeting.ts"
import type { Http2 } from "../port/HttpListener.ts"
import * as Keepalive from "./Keepalive.ts"
import { attach } from "./NodeCallStream.ts"
import { NodeSession } from "./NodeSession.ts"
import * as Timer from "../port/Timer.ts"
import { SessionCalls, type SessionLimits } from "./SessionCalls.ts"

/** Bytes that a caller may send ahead, per stream and per connection: the default 64 KiB halves large tensors' rate. */
export const streamWindow = 4 * 1024 * 1024
export const connectionWindow = 16 * 1024 * 1024

/** Also includes calls that the client has cancelled and Node has not closed yet. Beyond it, Node refuses calls. */
export const maxConcurrentStreams = 8192

/** Error of nghttp2 once Node has refused `maxSessionRejectedStreams` calls in a row. */
const callbackFailed = -902

const unlimited = 2 ** 31

export type RequestHandler = (request: Http2ServerRequest, response: Http2ServerResponse) => void

export interface Http2Options {
  readonly maxMessageSize: number
  readonly keepalive: Keepalive.KeepaliveSettings
  /** Maximum time for the first settings of a client. */
  readonly greetingTimeoutMillis: number
  readonly limits: SessionLimits
  /** Handled before all others; undefined where `handler` takes all. */
  readonly calls: CallHandler | undefined
  /** Handles everything else. */
  readonly handler: RequestHandler
  /** Called in a stop when no client can begin further calls. */
  readonly onDrained: () => void
  /** Called shortly before the end of a stop. */
  readonly onLastCall: () => void
}

export const make = ({
  maxMessageSize,
  keepalive,
  greetingTimeoutMillis,
  limits,
  calls,
  handler,
  onDrained,
  onLastCall,
}: Http2Options): Http2 => {
  // It never listens: the port accepts its connections.
  const { createServer } = process.getBuiltinModule("node:http2")
  const server = createServer({
    settings: { initialWindowSize: streamWindow, maxConcurrentStreams },
    // In MB, including data that waits to be sent. With the default of 10, a few large responses refuse the next call.
    maxSessionMemory: 4 * Math.ceil(maxMessageSize / 1e6) + 100,
    // A client may open this many before it has read our settings, and is to try these again, not to be cut off.
    maxSessionRejectedStreams: maxConcurrentStreams * 2,
    // ResetBudget.ts limits resets. The limit of node:http2 ends a connection with all of its calls.
    streamResetBurst: unlimited,
    streamResetRate: unlimited,
    // Otherwise a value with a space at an end is dropped. gRPC allows such metadata.
    strictFieldWhitespaceValidation: false,
  })
  const sessions = new Map<Http2Session | undefined, SessionCalls>()
  server.on("request", handler)
  server.on("checkContinue", handler)
  server.on("sessionError", constVoid)
  /** The socket whose session is being made. */
  let accepted: Socket | undefined
  server.on("session", (session) => {
    if (accepted === undefined) throw new Error("A session without an accepted socket. This is a bug.")
    const its = new NodeSession(session, accepted)
    const inFlight = new SessionCalls(its, session, limits)
    sessions.set(session, inFlight)
    session.on("close", () => sessions.delete(session))
    session.on("error", (error: NodeJS.ErrnoException) => {
      if (error.errno === callbackFailed) inFlight.flooded()
    })
    session.setLocalWindowSize(connectionWindow)
    Greeting.limit(its, greetingTimeoutMillis, limits.reports)
    Keepalive.watch(its, keepalive, inFlight, limits.reports)
  })
  route(server, sessions, calls, limits.sendTimeout.milliseconds)
  return {
    accept: (socket) => {
      // As on an HTTP/2-only server, a client that ends its side has disconnected. The HTTP/1.1 server would allow it.
      socket.allowHalfOpen = false
      accepted = socket
      server.emit("connection", socket)
      accepted = undefined
    },
    leave: () => {
      for (const { session } of sessions.values()) session.closeGracefully("stopping")
    },
    drain: () =>
      Drain.drain(
        Array.from(sessions.values(), ({ session }) => session),
        onDrained,
      ),
    lastCall: onLastCall,
    cutOff: () => {
      for (const { session } of sessions.values()) session.destroy()
    },
  }
}

const route = (
  server: Http2Server,
  sessions: ReadonlyMap<Http2Session | undefined, SessionCalls>,
  calls: CallHandler | undefined,
  sendTimeoutMillis: number,
): void => {
  // The compatibility layer is node's own listener of `stream`; what is not ours is handed on to it.
  const compatible = server.listeners("stream")
  server.removeAllListeners("stream")
  server.on("stream", (stream: ServerHttp2Stream, headers, ...rest) => {
    const ofSession = sessions.get(stream.session)
    // The connection has failed in the meantime, which also emits an error on the stream; without a listener, it ends
    // the process.
    if (ofSession === undefined) return void stream.on("error", constVoid)
    if (!ofSession.begin()) {
      stream.on("error", constVoid)
      // Which says that the call was not begun, and may be sent again.
      return void stream.close(ErrorCode.REFUSED_STREAM)
    }
    if (calls?.handles(headers) === true) return attach(stream, headers, calls, ofSession)
    const deadline = SessionCalls.ownDeadline(headers["grpc-timeout"])
    stream.on("close", () => ofSession.ended(!stream.writableEnded, deadline))
    // Without activity on its connection.
    stream.setTimeout(Math.min(sendTimeoutMillis, Timer.maxDelay), () => {
      if (!stream.writableEnded && stream.writableLength === 0) return
      ofSession.stalled(stream.writableLength)
      stream.close(ErrorCode.CANCEL)
    })
    for (const listener of compatible) listener.call(server, stream, headers, ...rest)
  })
}
