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
import { constants, type ServerHttp2Stream } from "node:http2"
import type { Call, CallHandler, CallStream, CallHeaders } from "./Call.ts"
import * as CallStatus from "./CallStatus.ts"
import * as HalfOpen from "./HalfOpen.ts"

const attached = Symbol("the call that the stream carries")

declare module "node:http2" {
  interface Http2Stream {
    [attached]?: NodeCallStream | undefined
  }
}

/** Begins a call on the stream. `onClose` is called when the stream has closed. */
export const attach = (
  stream: ServerHttp2Stream,
  headers: CallHeaders,
  calls: CallHandler,
  onClose: () => void,
): void => {
  const callStream = new NodeCallStream(stream, onClose)
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
  this[attached]?.call?.onDrain()
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

class NodeCallStream implements CallStream {
  /** Unknown until it has begun. */
  call: Call | undefined
  trailers: ReturnType<typeof CallStatus.trailers> | typeof ok = ok
  readonly #stream: ServerHttp2Stream
  readonly #onClose: () => void
  /** The status, or the last frame, was sent. */
  #hasEnded = false
  /** Bytes received after that. */
  #bytesAfterEnd = 0

  constructor(stream: ServerHttp2Stream, onClose: () => void) {
    this.#stream = stream
    this.#onClose = onClose
  }

  onData(chunk: Uint8Array): void {
    if (!this.#hasEnded) return this.call?.onData(chunk)
    this.#bytesAfterEnd += chunk.length
    // A reset at once would overtake the response; a caller that sends this much more does not read it anyway.
    if (this.#bytesAfterEnd > maxBytesAfterEnd) this.#stream.close(constants.NGHTTP2_NO_ERROR)
  }

  onClose(): void {
    this.#hasEnded = true
    this.#onClose()
    this.call?.onClose()
  }

  reply(frame: Uint8Array): void {
    if (this.#isOver()) return
    this.#hasEnded = true
    this.#respond()
    this.#stream.end(frame)
  }

  send(frames: Uint8Array): boolean {
    if (this.#isOver()) return true
    if (!this.#stream.headersSent) {
      this.#respond()
      this.#stream.on("drain", onDrain)
    }
    return this.#stream.write(frames)
  }

  end(): void {
    if (this.#isOver()) return
    this.#hasEnded = true
    if (!this.#stream.headersSent) this.#respond()
    this.#stream.end()
    this.#stream.resume()
  }

  fail(status: CallStatus.CallStatus): void {
    if (this.#isOver()) return
    this.#hasEnded = true
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

/** Header array, which node does not copy. */
const replyHeaders = [":status", "200", "content-type", GrpcContentType.protobuf]

/** Without a date header, like gRPC's own servers. */
const replyOptions = { waitForTrailers: true, sendDate: false }

const failureHeaders = { ":status": 200, "content-type": GrpcContentType.protobuf }

const failureOptions = { endStream: true, sendDate: false }
