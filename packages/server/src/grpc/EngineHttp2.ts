/**
 * HTTP/2 on the gRPC port, with `@nereid/http2`: handles inference before Connect, and passes everything else to
 * Connect. GrpcHttp2.ts is the same with node:http2; the option `http2` selects one of the two.
 *
 *   stream ─┬─ plain inference (InferenceCalls.ts) ─► EngineCallStream ─┬─► UnaryCall ──┬─► gateway
 *           │                                                           └─► StreamCall ─┘
 *           └─ everything else ─► EngineNodeStream ─► GrpcConnect ─► GrpcRoutes ─► gateway
 */
import { constVoid } from "effect/Function"
import type { Socket } from "node:net"
import type { Headers } from "@nereid/http2/internal/connection/Connection"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import { SocketConnection } from "@nereid/http2/internal/socket/SocketConnection"
import type { CallHandler } from "./Call.ts"
import * as Drain from "./Drain.ts"
import * as EngineCallStream from "./EngineCallStream.ts"
import * as EngineNodeStream from "./EngineNodeStream.ts"
import { EngineSession } from "./EngineSession.ts"
import * as Greeting from "./Greeting.ts"
import { connectionWindow, type Http2Options, maxConcurrentStreams, streamWindow } from "./GrpcHttp2.ts"
import type { Http2 } from "../port/HttpListener.ts"
import * as Keepalive from "./Keepalive.ts"
import { SessionCalls } from "./SessionCalls.ts"

const settings = { role: "server", streamWindow, connectionWindow, maxConcurrentStreams } as const

export const make = (options: Http2Options): Http2 => {
  const sessions = new Set<EngineSession>()
  return {
    accept: (socket) => {
      socket.allowHalfOpen = false
      const session = open(socket, options)
      sessions.add(session)
      session.onClose(() => sessions.delete(session))
    },
    leave: () => {
      for (const session of sessions) session.closeGracefully("stopping")
    },
    drain: () => Drain.drain([...sessions], options.onDrained),
    lastCall: options.onLastCall,
    cutOff: () => {
      for (const session of sessions) session.destroy()
    },
  }
}

const open = (socket: Socket, options: Http2Options): EngineSession => {
  const { keepalive, greetingTimeoutMillis, limits, calls, handler } = options
  const session = new EngineSession(socket)
  const inFlight = new SessionCalls(session, session, limits)
  const takes = recentlyTaken(calls)
  const own = new SocketConnection(
    socket,
    { ...settings, unfinishedMillis: greetingTimeoutMillis },
    {
      onStream: (stream, headers, isLast, fields) => {
        const { connection } = own
        if (!inFlight.begin()) {
          stream.handler = refused
          // Which says that the call was not begun, and may be sent again.
          return connection.reset(stream, ErrorCode.REFUSED_STREAM)
        }
        if (calls !== undefined && takes(headers)) {
          return EngineCallStream.attach(own, stream, headers, calls, inFlight)
        }
        const deadline = SessionCalls.ownDeadline(headers["grpc-timeout"])
        const nodeStream = EngineNodeStream.attach(connection, session, stream, { headers, isLast, fields }, handler)
        nodeStream.onStreamClosed((hasEnded) => inFlight.ended(!hasEnded, deadline))
        nodeStream.limitSending(limits.sendTimeout.milliseconds, (size) => inFlight.stalled(size))
      },
      onOpen: () => session.opened(),
      onSettings: constVoid,
      onPing: () => session.pinged(),
      onPingAcknowledged: () => session.acknowledged(),
      onGoaway: constVoid,
      onStreamClosed: constVoid,
      onHeld: (bytes) => (bytes > 0 ? inFlight.memory.add(bytes) : inFlight.memory.give(-bytes)),
      onFinished: (error) => {
        if (error?.code === ErrorCode.ENHANCE_YOUR_CALM && !session.isClosedAtOnce) inFlight.exceeded(error.message)
      },
      onClose: () => session.ended(),
    },
  )
  session.begin(own)
  Greeting.limit(session, greetingTimeoutMillis, limits.reports)
  Keepalive.watch(session, keepalive, inFlight, limits.reports)
  return session
}

/** Whether a call with these headers is handled; the calls of a connection mostly have the same headers. */
const recentlyTaken = (calls: CallHandler | undefined): ((headers: Headers) => boolean) => {
  let last: Headers | undefined
  let isTaken = false
  return (headers) => {
    if (headers !== last) {
      isTaken = calls?.handles(headers) === true
      last = headers
    }
    return isTaken
  }
}

const refused = {
  onHeaders: constVoid,
  onData: constVoid,
  onTrailers: constVoid,
  onEnd: constVoid,
  onDrain: constVoid,
  onSent: constVoid,
  onClose: constVoid,
}
