/**
 * One unary call on an HTTP/2 stream, from its first header to its outcome. It only reads: GrpcConnection.ts has opened
 * the stream and written the request.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2"
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
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
  readonly #stream: ClientHttp2Stream
  readonly #limit: number
  readonly #lost: (error: Error | undefined) => GrpcStatus.GrpcFailure | undefined
  #error: Error | undefined
  #reply: ((outcome: GrpcOutcome) => void) | undefined
  #header: IncomingHttpHeaders | undefined
  #trailer: IncomingHttpHeaders | undefined
  /** Bytes of a prefix that came in parts. */
  #part: Buffer | undefined
  #message: Buffer | undefined
  /** Bytes of the message that are there. */
  #filled = 0

  /** `lost` says why the connection is gone, given the stream's own error; undefined while it stands. */
  constructor(
    stream: ClientHttp2Stream,
    limit: number,
    lost: (error: Error | undefined) => GrpcStatus.GrpcFailure | undefined,
    reply: (outcome: GrpcOutcome) => void,
  ) {
    this.#stream = stream
    this.#limit = limit
    this.#lost = lost
    this.#reply = reply
    stream.on("response", (headers) => this.#onHeaders(headers))
    stream.on("data", (chunk: Buffer) => this.#onData(chunk))
    stream.on("trailers", (trailers) => this.#onTrailers(trailers))
    // Required: a reset would otherwise be an uncaught error. What there is to know of it is read at close.
    stream.on("error", (error) => (this.#error = error))
    stream.on("close", () => this.#onClose())
  }

  /** Whether anything of an answer has come: if not, and the stream was refused, the server has not seen the call. */
  get answered(): boolean {
    return this.#header !== undefined
  }

  /** Ends the call on both sides without a reply. */
  cancel(): void {
    if (this.#reply === undefined) return
    this.#reply = undefined
    this.#stream.close(constants.NGHTTP2_CANCEL)
  }

  #settle(outcome: GrpcOutcome): void {
    const reply = this.#reply
    this.#reply = undefined
    reply?.(outcome)
  }

  /** Ends the call for a fault that we have found in the answer. */
  #refuse(failure: GrpcStatus.GrpcFailure): void {
    if (this.#reply === undefined) return
    this.#stream.close(constants.NGHTTP2_CANCEL)
    this.#settle(Result.fail(failure))
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
      this.#message = data.subarray(prefixLength)
      this.#filled = length
    } else {
      this.#message = Buffer.allocUnsafeSlow(length)
      this.#append(data.subarray(prefixLength))
    }
  }

  #append(chunk: Buffer): void {
    const message = this.#message
    if (message === undefined) return
    if (chunk.length > message.length - this.#filled) {
      return this.#refuse(GrpcStatus.failure(GrpcCode.INTERNAL, "the server sent more than one message"))
    }
    this.#filled += chunk.copy(message, this.#filled)
  }

  #onTrailers(trailers: IncomingHttpHeaders): void {
    this.#trailer = trailers
    const status = GrpcStatus.fromTrailers(trailers)
    if (typeof status === "object") {
      // An answer may come before the request is all sent, and then nobody reads the rest.
      if (!this.#stream.writableFinished) this.#stream.close(constants.NGHTTP2_CANCEL)
      return this.#settle(Result.fail(status))
    }
    // Else the last of the message may still be on its way through the stream: at close there is all there will be.
    if (status === "ok" && this.#isComplete()) this.#succeed(trailers)
  }

  #isComplete(): boolean {
    return this.#message !== undefined && this.#filled === this.#message.length
  }

  #succeed(trailer: IncomingHttpHeaders): void {
    const { buffer, byteOffset, length } = this.#message ?? Buffer.alloc(0)
    this.#settle(
      Result.succeed({ header: this.#header ?? {}, message: new Uint8Array(buffer, byteOffset, length), trailer }),
    )
  }

  #onClose(): void {
    if (this.#reply === undefined) return
    const trailer = this.#trailer
    if (trailer !== undefined && GrpcStatus.fromTrailers(trailer) === "ok") {
      if (this.#isComplete()) return this.#succeed(trailer)
      return this.#settle(Result.fail(GrpcStatus.failure(GrpcCode.INTERNAL, "the server sent no complete message")))
    }
    this.#settle(Result.fail(this.#lost(this.#error) ?? this.#unfinished()))
  }

  /** The stream has ended without a status. */
  #unfinished(): GrpcStatus.GrpcFailure {
    const code = this.#stream.rstCode
    if (code === undefined || code === constants.NGHTTP2_NO_ERROR) {
      return GrpcStatus.failure(GrpcCode.UNAVAILABLE, "the server ended its answer without a status")
    }
    return GrpcStatus.failure(GrpcStatus.codeOfReset(code), `the server reset the call with HTTP/2 error code ${code}`)
  }
}
