/**
 * Implements a call's stream on `@nereid/http2`. EngineHttp2.ts has the rest of the HTTP/2 server; UnaryCall.ts and
 * StreamCall.ts implement calls.
 */
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import * as GrpcStatus from "@nereid/core/internal/grpc/GrpcStatus"
import type { Connection, Headers, Stream, StreamHandler } from "@nereid/http2/internal/connection/Connection"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import { HeaderTemplate } from "@nereid/http2/internal/hpack/HeaderEncoder"
import type { SocketConnection } from "@nereid/http2/internal/socket/SocketConnection"
import type { Call, CallHandler, CallStream } from "./Call.ts"
import * as CallStatus from "./CallStatus.ts"
import { lingerMillis } from "./HalfOpen.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"
import { SendingCall } from "./SendTimeout.ts"
import { SessionCalls } from "./SessionCalls.ts"

/** Begins a call on the stream, which belongs to the connection of `session`. */
export const attach = (
  socket: SocketConnection,
  stream: Stream,
  headers: Headers,
  calls: CallHandler,
  session: SessionCalls,
): void => {
  const callStream = new EngineCallStream(socket, stream, SessionCalls.ownDeadline(headers["grpc-timeout"]), session)
  stream.handler = callStream
  callStream.begin(calls.begin(headers, callStream))
}

class EngineCallStream extends SendingCall implements CallStream, StreamHandler {
  /** Undefined until it has begun. */
  #call: Call | undefined
  readonly #socket: SocketConnection
  readonly #connection: Connection
  readonly #stream: Stream
  readonly #deadline: number | undefined
  readonly #session: SessionCalls
  /** Bytes of the frames that are being sent. */
  #sending = 0
  #hasSentHead = false
  /** The status, or the last frame, was sent. */
  #hasEnded = false
  /** Bytes received after that. */
  #bytesAfterEnd = 0
  /** Resets the stream of a client that does not end its side. */
  #linger: NodeJS.Timeout | undefined

  constructor(socket: SocketConnection, stream: Stream, deadline: number | undefined, session: SessionCalls) {
    super()
    this.#socket = socket
    this.#connection = socket.connection
    this.#stream = stream
    this.#deadline = deadline
    this.#session = session
  }

  /** The call may have responded already, and its stream may have closed. */
  begin(call: Call): void {
    this.#call = call
    if (this.#stream.isClosed) call.onClose()
  }

  onHeaders(): void {}

  onData(part: Uint8Array): boolean {
    if (!this.#hasEnded) return this.#call?.onData(part) ?? false
    this.#bytesAfterEnd += part.length
    // A reset at once would overtake the response; a caller that sends this much more does not read it anyway.
    if (this.#bytesAfterEnd > maxBytesAfterEnd) this.#connection.reset(this.#stream, ErrorCode.NO_ERROR)
    return false
  }

  onTrailers(): void {}

  onEnd(): void {
    this.#call?.onEnd()
  }

  onDrain(): void {
    if (!this.#hasEnded) this.#session.sendTimeout.remove(this)
    this.#call?.onDrain()
  }

  onSent(): void {
    if (this.#stream.isClosed) return
    this.#linger = setTimeout(() => this.#connection.reset(this.#stream, ErrorCode.NO_ERROR), lingerMillis)
  }

  onClose(): void {
    clearTimeout(this.#linger)
    const wasCancelled = !this.#hasEnded
    this.#hasEnded = true
    this.#session.sendTimeout.remove(this)
    this.#session.ended(wasCancelled, this.#deadline)
    this.#call?.onClose()
  }

  get memory(): HeldMemory {
    return this.#session.memory
  }

  get lag(): number {
    return this.#socket.lag
  }

  override get sent(): number {
    return this.#session.bytesWritten
  }

  override get size(): number {
    return this.#sending
  }

  override stalled(): void {
    this.#session.stalled(this.#sending)
    this.#connection.reset(this.#stream, ErrorCode.CANCEL)
  }

  reply(frame: Uint8Array): void {
    if (this.#isOver()) return
    this.#hasEnded = true
    this.#connection.message(this.#stream, replyHead, frame, okTrailers)
    this.#ended(frame.length)
  }

  send(frames: Uint8Array): boolean {
    if (this.#isOver()) return true
    this.#respond()
    const hasRoom = this.#connection.data(this.#stream, frames)
    if (!hasRoom) {
      this.#sending = frames.length
      this.#session.sendTimeout.add(this)
    }
    return hasRoom
  }

  end(): void {
    if (this.#isOver()) return
    this.#respond()
    this.#hasEnded = true
    this.#connection.end(this.#stream, { template: okTrailers, fields: [] })
    this.#ended(this.#sending)
  }

  fail(status: CallStatus.CallStatus): void {
    if (this.#isOver()) return
    this.#hasEnded = true
    if (status.isShared === true && !this.#hasSentHead) {
      this.#connection.head(this.#stream, sharedHead(status), [], true)
      return this.#ended(0)
    }
    const trailers = Object.entries(CallStatus.trailers(status)).flat()
    if (this.#hasSentHead) this.#connection.end(this.#stream, { template: undefined, fields: trailers })
    else this.#connection.head(this.#stream, replyHead, trailers, true)
    this.#ended(this.#sending)
  }

  pause(): void {
    this.#connection.pause(this.#stream)
  }

  resume(): void {
    this.#connection.resume(this.#stream)
  }

  #respond(): void {
    if (this.#hasSentHead) return
    this.#hasSentHead = true
    this.#connection.head(this.#stream, replyHead, [], false)
  }

  /** The end of the response, whose last frames have `size` bytes, was sent or waits to be sent. */
  #ended(size: number): void {
    if (this.#stream.isClosed) return
    this.#sending = size
    this.#session.sendTimeout.add(this)
    // Discards the rest of the request.
    this.#connection.resume(this.#stream)
  }

  #isOver(): boolean {
    return this.#hasEnded || this.#stream.isClosed
  }
}

/** Bytes that are read and dropped after the response. */
const maxBytesAfterEnd = 16 * 1024 * 1024

/** Without a date header, like gRPC's own servers. */
const replyHead = new HeaderTemplate([":status", "200", "content-type", GrpcContentType.protobuf])

/** Whole responses of calls that end with the same status. */
const sharedHeads = new WeakMap<CallStatus.CallStatus, HeaderTemplate>()

const sharedHead = (status: CallStatus.CallStatus): HeaderTemplate => {
  const known = sharedHeads.get(status)
  if (known !== undefined) return known
  const head = { ":status": "200", "content-type": GrpcContentType.protobuf, ...CallStatus.trailers(status) }
  const template = new HeaderTemplate(Object.entries(head).flat())
  sharedHeads.set(status, template)
  return template
}

const okTrailers = new HeaderTemplate(Object.entries(GrpcStatus.ok).flat())
