/**
 * One call that is answered by any number of messages, until its status. Whoever reads them may have them wait: then the
 * stream's window fills, and the server waits too. Calls with one message are GrpcUnaryCall.ts's.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2"
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import type { CallConnection } from "./StartableCall.ts"
import { prefixLength, unfinished } from "./GrpcUnaryCall.ts"
import type { GrpcSession } from "./GrpcSession.ts"
import * as GrpcStatus from "./GrpcStatus.ts"

export interface GrpcReader {
  /** Takes the next message; a view on received memory, and no Buffer, whose slice() would be no copy. */
  readonly message: (message: Uint8Array) => void
  /** Takes the end, once, behind all messages; not after a cancel. */
  readonly end: (outcome: Result.Result<void, GrpcStatus.GrpcFailure>) => void
}

export class GrpcStreamCall {
  readonly headers: OutgoingHttpHeaders
  /** The message behind its prefix. */
  readonly frame: Uint8Array
  readonly #connection: CallConnection
  readonly #limit: number
  #reader: GrpcReader | undefined
  #stream: ClientHttp2Stream | undefined
  /** Whether this is the second stream. */
  #again = false
  #hasHeaders = false
  #hasEnded = false
  #error: Error | undefined
  #trailer: IncomingHttpHeaders | undefined
  /** Bytes of a prefix that came in parts. */
  #part: Buffer | undefined
  /** A message of which there are only parts, and how much of it. */
  #message: Uint8Array | undefined
  #filled = 0

  constructor(
    connection: CallConnection,
    headers: OutgoingHttpHeaders,
    frame: Uint8Array,
    limit: number,
    reader: GrpcReader,
  ) {
    this.#connection = connection
    this.headers = headers
    this.frame = frame
    this.#limit = limit
    this.#reader = reader
  }

  listen(session: GrpcSession, stream: ClientHttp2Stream): void {
    this.#stream = stream
    stream.on("response", (headers) => this.#onHeaders(headers))
    stream.on("data", (chunk: Buffer) => this.#onData(chunk))
    stream.on("trailers", (trailers) => {
      this.#trailer = trailers
      this.#endIfOver()
    })
    stream.on("end", () => {
      this.#hasEnded = true
      this.#endIfOver()
    })
    // Required: a reset would otherwise be an uncaught error. What there is to know of it is read at close.
    stream.on("error", (error) => (this.#error = error))
    stream.on("close", () => this.#onClose(session, stream))
  }

  /** Ends the call on both sides without a word to its reader. */
  cancel(): void {
    if (this.#reader === undefined) return
    this.#reader = undefined
    this.#stream?.close(constants.NGHTTP2_CANCEL)
    // What has come and was not read would keep it from closing.
    this.#stream?.resume()
  }

  pause(): void {
    this.#stream?.pause()
  }

  resume(): void {
    this.#stream?.resume()
  }

  fail(failure: GrpcStatus.GrpcFailure): void {
    this.#end(Result.fail(failure))
  }

  #end(outcome: Result.Result<void, GrpcStatus.GrpcFailure>): void {
    const reader = this.#reader
    this.#reader = undefined
    reader?.end(outcome)
  }

  /** Ends the call for a fault that we have found in the answer. */
  #refuse(code: number, message: string): void {
    if (this.#reader === undefined) return
    this.#stream?.close(constants.NGHTTP2_CANCEL)
    this.#stream?.resume()
    this.fail(GrpcStatus.failure(code, message))
  }

  #onHeaders(headers: IncomingHttpHeaders): void {
    this.#hasHeaders = true
    // Headers with a status are trailers as well: there is nothing else.
    if (headers["grpc-status"] !== undefined) {
      this.#trailer = headers
      return
    }
    const wrong = GrpcStatus.fromHeaders(headers)
    if (wrong !== undefined) this.#refuse(wrong.code, wrong.message)
  }

  #onData(chunk: Buffer): void {
    let rest: Buffer = this.#part === undefined ? chunk : Buffer.concat([this.#part, chunk])
    this.#part = undefined
    while (this.#reader !== undefined && rest.length > 0) {
      if (this.#message !== undefined) {
        const taken = Math.min(rest.length, this.#message.length - this.#filled)
        this.#message.set(rest.subarray(0, taken), this.#filled)
        this.#filled += taken
        rest = rest.subarray(taken)
        if (this.#filled < this.#message.length) return
        const message = this.#message
        this.#message = undefined
        this.#reader.message(message)
        continue
      }
      if (rest.length < prefixLength) {
        this.#part = rest
        return
      }
      const length = rest.readUInt32BE(1)
      if (rest[0] !== 0) {
        return this.#refuse(GrpcCode.INTERNAL, "the server sent a compressed message, which was not asked for")
      }
      if (length > this.#limit) {
        const text = `a response has ${length} bytes, but maxResponseSize is ${this.#limit}`
        return this.#refuse(GrpcCode.INTERNAL, text)
      }
      rest = rest.subarray(prefixLength)
      if (rest.length < length) {
        this.#message = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
        this.#filled = 0
      } else {
        const message = new Uint8Array(rest.buffer, rest.byteOffset, length)
        rest = rest.subarray(length)
        this.#reader.message(message)
      }
    }
  }

  #endIfOver(): void {
    if (!this.#hasEnded || this.#trailer === undefined) return
    const status = GrpcStatus.fromTrailers(this.#trailer)
    if (status === undefined) return
    // An answer may come before the request is all sent, and then nobody reads the rest.
    if (this.#stream?.writableFinished === false) this.#stream.close(constants.NGHTTP2_CANCEL)
    if (status !== "ok") return this.fail(status)
    if (this.#message !== undefined || this.#part !== undefined) {
      return this.fail(GrpcStatus.failure(GrpcCode.INTERNAL, "the server's last message is not complete"))
    }
    this.#end(Result.void)
  }

  #onClose(session: GrpcSession, stream: ClientHttp2Stream): void {
    session.released()
    if (this.#reader === undefined) return
    const status = this.#trailer && GrpcStatus.fromTrailers(this.#trailer)
    if (status !== undefined && status !== "ok") return this.fail(status)
    const { rstCode } = stream
    // As in GrpcUnaryCall.ts.
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM && !this.#again && !this.#hasHeaders) {
      this.#again = true
      this.#error = undefined
      return this.#connection.start(this)
    }
    this.fail(this.#connection.lost(session, this.#error) ?? unfinished(rstCode))
  }
}
