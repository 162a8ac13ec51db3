/**
 * One unary call, from the first header of its answer to its outcome. It only reads: GrpcConnection.ts opens the stream and
 * writes the request, and once more where the server has refused the stream.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2"
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import type { CallConnection } from "./StartableCall.ts"
import type { GrpcSession } from "./GrpcSession.ts"
import * as GrpcStatus from "./GrpcStatus.ts"

export interface GrpcAnswer {
  readonly header: IncomingHttpHeaders
  /** The message; a view on received memory, and no Buffer, whose slice() would be no copy. */
  readonly message: Uint8Array
  readonly trailer: IncomingHttpHeaders
}

export type GrpcOutcome = Result.Result<GrpcAnswer, GrpcStatus.GrpcFailure>

/** Bytes before a message: whether it is compressed, and its length. */
export const prefixLength = 5

export class GrpcCall {
  readonly headers: OutgoingHttpHeaders
  /** The message behind its prefix. */
  readonly frame: Uint8Array
  readonly #connection: CallConnection
  readonly #limit: number
  #reply: ((outcome: GrpcOutcome) => void) | undefined
  #stream: ClientHttp2Stream | undefined
  /** Whether this is the second stream. */
  #again = false
  #error: Error | undefined
  #header: IncomingHttpHeaders | undefined
  #trailer: IncomingHttpHeaders | undefined
  /** Bytes of a prefix that came in parts. */
  #part: Buffer | undefined
  /** On received memory where it came in one piece, and no Buffer, whose slice() would be no copy. */
  #message: Uint8Array | undefined
  /** Bytes of the message that are there. */
  #filled = 0

  constructor(
    connection: CallConnection,
    headers: OutgoingHttpHeaders,
    frame: Uint8Array,
    limit: number,
    reply: (outcome: GrpcOutcome) => void,
  ) {
    this.#connection = connection
    this.headers = headers
    this.frame = frame
    this.#limit = limit
    this.#reply = reply
  }

  /** Reads what comes on its stream. */
  listen(session: GrpcSession, stream: ClientHttp2Stream): void {
    this.#stream = stream
    stream.on("response", (headers) => this.#onHeaders(headers))
    stream.on("data", (chunk: Buffer) => this.#onData(chunk))
    stream.on("trailers", (trailers) => this.#onTrailers(trailers))
    // Required: a reset would otherwise be an uncaught error. What there is to know of it is read at close.
    stream.on("error", (error) => (this.#error = error))
    stream.on("close", () => this.#onClose(session, stream))
  }

  /** Ends the call on both sides without a reply. */
  cancel(): void {
    if (this.#reply === undefined) return
    this.#reply = undefined
    this.#stream?.close(constants.NGHTTP2_CANCEL)
  }

  fail(failure: GrpcStatus.GrpcFailure): void {
    this.#settle(Result.fail(failure))
  }

  #settle(outcome: GrpcOutcome): void {
    const reply = this.#reply
    this.#reply = undefined
    reply?.(outcome)
  }

  /** Ends the call for a fault that we have found in the answer. */
  #refuse(failure: GrpcStatus.GrpcFailure): void {
    if (this.#reply === undefined) return
    this.#stream?.close(constants.NGHTTP2_CANCEL)
    this.fail(failure)
  }

  #onHeaders(headers: IncomingHttpHeaders): void {
    this.#header = headers
    // Headers with a status are trailers as well: there is nothing else.
    if (headers["grpc-status"] !== undefined) return this.#onTrailers(headers)
    const wrong = GrpcStatus.fromHeaders(headers)
    if (wrong !== undefined) this.#refuse(wrong)
  }

  #onData(chunk: Buffer): void {
    if (this.#reply === undefined) return
    if (this.#message !== undefined) return this.#append(chunk)
    const data: Buffer = this.#part === undefined ? chunk : Buffer.concat([this.#part, chunk])
    if (data.length < prefixLength) {
      this.#part = data
      return
    }
    this.#part = undefined
    const length = data.readUInt32BE(1)
    if (data[0] !== 0) {
      this.#refuse(
        GrpcStatus.failure(GrpcCode.INTERNAL, "the server sent a compressed message, which was not asked for"),
      )
    } else if (length > this.#limit) {
      const text = `the reply has ${length} bytes, but maxResponseSize is ${this.#limit}`
      this.#refuse(GrpcStatus.failure(GrpcCode.INTERNAL, text))
    } else if (data.length === prefixLength + length) {
      this.#message = new Uint8Array(data.buffer, data.byteOffset + prefixLength, length)
      this.#filled = length
    } else {
      this.#message = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
      this.#append(data.subarray(prefixLength))
    }
  }

  #append(chunk: Buffer): void {
    const message = this.#message
    if (message === undefined) return
    if (chunk.length > message.length - this.#filled) {
      return this.#refuse(GrpcStatus.failure(GrpcCode.INTERNAL, "the server sent more than one message"))
    }
    message.set(chunk, this.#filled)
    this.#filled += chunk.length
  }

  #onTrailers(trailers: IncomingHttpHeaders): void {
    this.#trailer = trailers
    const status = GrpcStatus.fromTrailers(trailers)
    if (typeof status === "object") {
      // An answer may come before the request is all sent, and then nobody reads the rest.
      if (this.#stream?.writableFinished === false) this.#stream.close(constants.NGHTTP2_CANCEL)
      return this.fail(status)
    }
    // Else the last of the message may still be on its way through the stream: at close there is all there will be.
    if (status === "ok" && this.#isComplete()) this.#succeed(trailers)
  }

  #isComplete(): boolean {
    return this.#message !== undefined && this.#filled === this.#message.length
  }

  #succeed(trailer: IncomingHttpHeaders): void {
    this.#settle(Result.succeed({ header: this.#header ?? {}, message: this.#message ?? noBytes, trailer }))
  }

  #onClose(session: GrpcSession, stream: ClientHttp2Stream): void {
    session.released()
    if (this.#reply === undefined) return
    const trailer = this.#trailer
    if (trailer !== undefined && GrpcStatus.fromTrailers(trailer) === "ok") {
      if (this.#isComplete()) return this.#succeed(trailer)
      return this.fail(GrpcStatus.failure(GrpcCode.INTERNAL, "the server sent no complete message"))
    }
    const { rstCode } = stream
    // A refused stream was not processed (RFC 9113, 8.7), so it may be sent again: once, it may be refused for good.
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM && !this.#again && this.#header === undefined) {
      this.#again = true
      this.#error = undefined
      return this.#connection.start(this)
    }
    this.fail(this.#connection.lost(session, this.#error) ?? unfinished(rstCode))
  }
}

const noBytes = new Uint8Array(0)

/** Of a stream that has ended without a status. */
export const unfinished = (code: number | undefined): GrpcStatus.GrpcFailure => {
  if (code === undefined || code === constants.NGHTTP2_NO_ERROR) {
    return GrpcStatus.failure(GrpcCode.UNAVAILABLE, "the server ended its answer without a status")
  }
  return GrpcStatus.failure(GrpcStatus.codeOfReset(code), `the server reset the call with HTTP/2 error code ${code}`)
}
