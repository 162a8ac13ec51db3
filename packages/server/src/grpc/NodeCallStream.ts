/**
 * Implements a call's stream on node:http2, with as few of its calls as possible. GrpcHttp2.ts has the rest of the
 * HTTP/2 server; UnaryCall.ts and StreamCall.ts implement calls.
 *
 * All streams share their listeners, and a stream that is over has no reference to its call. Node keeps a closure of
 * each stream where only full collections look (V8 puts closures that are assigned to a property there), and with it
 * all that the stream refers to: what belongs to the call would survive with it, and be copied by two collections on
 * its way.
 */
import { constVoid } from "effect/Function"
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import { ok } from "@nereid/core/internal/grpc/GrpcStatus"
import type { ServerHttp2Stream } from "node:http2"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import type { Call, CallHandler, CallStream, CallHeaders } from "./Call.ts"
import * as CallStatus from "./CallStatus.ts"
import * as HalfOpen from "./HalfOpen.ts"
import * as ReplyHeaders from "./ReplyHeaders.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"
import { SendingCall } from "./SendTimeout.ts"
import { SessionCalls } from "./SessionCalls.ts"

const attached = Symbol("the call that the stream carries")

declare module "node:http2" {
  interface Http2Stream {
    [attached]?: NodeCallStream | undefined
  }
}

/** Begins a call on the stream, which belongs to the connection of `session`. */
export const attach = (
  stream: ServerHttp2Stream,
  headers: CallHeaders,
  calls: CallHandler,
  session: SessionCalls,
): void => {
  const callStream = new NodeCallStream(stream, SessionCalls.ownDeadline(headers["grpc-timeout"]), session)
  stream[attached] = callStream
  // A stream that the caller resets emits an error; without a listener that ends the process.
  stream.on("error", constVoid)
  stream.on("data", onData)
  stream.on("end", onEnd)
  stream.on("close", onCloseOfStream)
  callStream.call = calls.begin(headers, callStream)
}

function onData(this: ServerHttp2Stream, chunk: Uint8Array): void {
  this[attached]?.onData(chunk)
}

function onEnd(this: ServerHttp2Stream): void {
  this[attached]?.call?.onEnd()
}

function onDrain(this: ServerHttp2Stream): void {
  this[attached]?.onDrain()
}

function onCloseOfStream(this: ServerHttp2Stream): void {
  const callStream = this[attached]
  this[attached] = undefined
  callStream?.onClose()
}

function sendTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(this[attached]?.trailers ?? ok)
  HalfOpen.closeSoon(this)
}

class NodeCallStream extends SendingCall implements CallStream {
  /** Unknown until it has begun. */
  call: Call | undefined
  trailers: ReturnType<typeof CallStatus.trailers> | typeof ok = ok
  readonly #stream: ServerHttp2Stream
  readonly #deadline: number | undefined
  readonly #session: SessionCalls
  /** Bytes of the frames that are being sent. */
  #sending = 0
  /** The status, or the last frame, was sent. */
  #hasEnded = false
  /** Bytes received after that. */
  #bytesAfterEnd = 0

  constructor(stream: ServerHttp2Stream, deadline: number | undefined, session: SessionCalls) {
    super()
    this.#stream = stream
    this.#deadline = deadline
    this.#session = session
  }

  onData(chunk: Uint8Array): void {
    if (!this.#hasEnded) return void this.call?.onData(chunk)
    this.#bytesAfterEnd += chunk.length
    // A reset at once would overtake the response; a caller that sends this much more does not read it anyway.
    if (this.#bytesAfterEnd > maxBytesAfterEnd) this.#stream.close(ErrorCode.NO_ERROR)
  }

  onClose(): void {
    const wasCancelled = !this.#hasEnded
    this.#hasEnded = true
    this.#session.sendTimeout.remove(this)
    this.#session.ended(wasCancelled, this.#deadline)
    this.call?.onClose()
  }

  /** node:http2 does not say. */
  readonly lag = 0

  get memory(): HeldMemory {
    return this.#session.memory
  }

  override get sent(): number {
    return this.#session.bytesWritten
  }

  override get size(): number {
    return this.#sending
  }

  override stalled(): void {
    this.#session.stalled(this.#sending)
    this.#stream.close(ErrorCode.CANCEL)
  }

  onDrain(): void {
    if (!this.#hasEnded) this.#session.sendTimeout.remove(this)
    this.call?.onDrain()
  }

  reply(frame: Uint8Array): void {
    if (this.#isOver()) return
    this.#end(frame.length)
    this.#respond()
    this.#stream.end(frame)
  }

  send(frames: Uint8Array): boolean {
    if (this.#isOver()) return true
    if (!this.#stream.headersSent) {
      this.#respond()
      this.#stream.on("drain", onDrain)
    }
    const hasRoom = this.#stream.write(frames)
    if (!hasRoom) {
      this.#sending = frames.length
      this.#session.sendTimeout.add(this)
    }
    return hasRoom
  }

  end(): void {
    if (this.#isOver()) return
    this.#end(this.#sending)
    if (!this.#stream.headersSent) this.#respond()
    this.#stream.end()
    this.#stream.resume()
  }

  fail(status: CallStatus.CallStatus): void {
    if (this.#isOver()) return
    this.#end(this.#sending)
    this.trailers = CallStatus.trailers(status)
    if (this.#stream.headersSent) this.#stream.end()
    else {
      this.#stream.respond({ ...failureHeaders, ...this.trailers }, failureOptions)
      HalfOpen.closeSoon(this.#stream)
    }
    this.#stream.resume()
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  /** Begins the end of the response, whose last frames have `size` bytes. */
  #end(size: number): void {
    this.#hasEnded = true
    this.#sending = size
    this.#session.sendTimeout.add(this)
  }

  #respond(): void {
    this.#stream.on("wantTrailers", sendTrailers)
    this.#stream.respond(replyHeaders, replyOptions)
  }

  /** Also true for a stream that is destroyed and has not emitted "close" yet. */
  #isOver(): boolean {
    return this.#hasEnded || this.#stream.destroyed || this.#stream.closed
  }
}

/** Bytes that are read and dropped after the response. */
const maxBytesAfterEnd = 16 * 1024 * 1024

const replyHeaders = ReplyHeaders.make(process.versions.node)

/** Without a date header, like gRPC's own servers. */
const replyOptions = { waitForTrailers: true, sendDate: false }

const failureHeaders = { ":status": 200, "content-type": GrpcContentType.protobuf }

const failureOptions = { endStream: true, sendDate: false }
