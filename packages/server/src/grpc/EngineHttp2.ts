/**
 * HTTP/2 on the gRPC port, with `@nereid/http2`: handles inference before Connect, and passes everything else to
 * Connect. GrpcHttp2.ts is the same with node:http2; the option `http2` selects one of the two.
 *
 *   stream ─┬─ plain inference (InferenceCalls.ts) ─► EngineCallStream ─┬─► UnaryCall ──┬─► gateway
 *           │                                                           └─► StreamCall ─┘
 *           └─ everything else ─► EngineNodeStream ─► GrpcConnect ─► GrpcRoutes ─► gateway
 */
import { constFalse, constVoid } from "effect/Function"
import type { Socket } from "node:net"
import type { Headers, Stream } from "@nereid/http2/internal/connection/Connection"
import { type ConnectionError, ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import type { FieldList } from "@nereid/http2/internal/hpack/HeaderDecoder"
import { SocketConnection, type SocketEvents, type SocketOptions } from "@nereid/http2/internal/socket/SocketConnection"
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
  const socketOptions = { ...settings, unfinishedMillis: options.greetingTimeoutMillis }
  return {
    accept: (socket) => {
      socket.allowHalfOpen = false
      sessions.add(new ServedConnection(socket, options, socketOptions, sessions).session)
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

/** The events of one connection. Methods, because closures would take more memory than the connection itself. */
class ServedConnection implements SocketEvents {
  readonly session: EngineSession
  readonly #options: Http2Options
  readonly #sessions: Set<EngineSession>
  readonly #calls: SessionCalls
  readonly #own: SocketConnection
  /** The calls of a connection mostly have the same headers. */
  #lastHeaders: Headers | undefined
  #takesLast = false

  constructor(socket: Socket, options: Http2Options, settings: SocketOptions, sessions: Set<EngineSession>) {
    const { keepalive, greetingTimeoutMillis, limits } = options
    const session = (this.session = new EngineSession(socket))
    this.#options = options
    this.#sessions = sessions
    this.#calls = new SessionCalls(session, session, limits)
    this.#own = new SocketConnection(socket, settings, this)
    session.begin(this.#own)
    Greeting.limit(session, greetingTimeoutMillis, limits.reports)
    Keepalive.watch(session, keepalive, this.#calls, limits.reports)
  }

  onStream(stream: Stream, headers: Headers, isLast: boolean, fields: FieldList): void {
    const { calls, handler, limits } = this.#options
    const { connection } = this.#own
    const inFlight = this.#calls
    if (!inFlight.begin()) {
      stream.handler = refused
      // Which says that the call was not begun, and may be sent again.
      return connection.reset(stream, ErrorCode.REFUSED_STREAM)
    }
    if (calls !== undefined && this.#takes(calls, headers)) {
      return EngineCallStream.attach(this.#own, stream, headers, calls, inFlight)
    }
    const deadline = SessionCalls.ownDeadline(headers["grpc-timeout"])
    const head = { headers, isLast, fields }
    const nodeStream = EngineNodeStream.attach(connection, this.session, stream, head, handler)
    nodeStream.onStreamClosed((hasEnded) => inFlight.ended(!hasEnded, deadline))
    nodeStream.limitSending(limits.sendTimeout.milliseconds, (size) => inFlight.stalled(size))
  }

  onOpen(): void {
    this.session.opened()
  }

  onSettings(): void {}

  onPing(): void {
    this.session.pinged()
  }

  onPingAcknowledged(): void {
    this.session.acknowledged()
  }

  onGoaway(): void {}

  onStreamClosed(): void {}

  onHeld(bytes: number): void {
    if (bytes > 0) this.#calls.memory.add(bytes)
    else this.#calls.memory.give(-bytes)
  }

  onFinished(error: ConnectionError | undefined): void {
    if (error?.code !== ErrorCode.ENHANCE_YOUR_CALM || this.session.isClosedAtOnce) return
    this.#calls.exceeded(error.message)
  }

  onClose(): void {
    this.#sessions.delete(this.session)
    this.session.ended()
  }

  #takes(calls: CallHandler, headers: Headers): boolean {
    if (headers !== this.#lastHeaders) {
      this.#takesLast = calls.handles(headers)
      this.#lastHeaders = headers
    }
    return this.#takesLast
  }
}

const refused = {
  onHeaders: constVoid,
  onData: constFalse,
  onTrailers: constVoid,
  onEnd: constVoid,
  onDrain: constVoid,
  onSent: constVoid,
  onClose: constVoid,
}
