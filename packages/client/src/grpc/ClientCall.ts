/**
 * Lifecycle of the HTTP/2 stream of a unary or streaming call, from its start to the outcome. If the server refuses the
 * stream, the call starts once more. GrpcConnection.ts opens streams and writes requests. GrpcUnaryCall.ts and
 * GrpcStreamCall.ts read messages.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2"
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { ResponseMessageReader } from "@nereid/core/internal/grpc/ResponseMessageReader"
import * as GrpcFailure from "./GrpcFailure.ts"
import type { GrpcSession } from "./GrpcSession.ts"
import type { CallConnection, StartableCall } from "./StartableCall.ts"

/** `A` is the outcome of a call that succeeds. */
export abstract class ClientCall<A> implements StartableCall {
  readonly headers: OutgoingHttpHeaders
  /** The request message behind its prefix. */
  readonly frame: Uint8Array
  /** Largest response message in bytes. */
  protected readonly limit: number
  protected stream: ClientHttp2Stream | undefined
  protected responseHeaders: IncomingHttpHeaders | undefined
  protected trailers: IncomingHttpHeaders | undefined
  readonly #connection: CallConnection
  /** Takes the outcome; undefined once the call is over. */
  #reply: ((outcome: Result.Result<A, GrpcFailure.GrpcFailure>) => void) | undefined
  /** Whether this is the second stream. */
  #isRetry = false
  #error: Error | undefined

  constructor(
    connection: CallConnection,
    headers: OutgoingHttpHeaders,
    frame: Uint8Array,
    limit: number,
    reply: (outcome: Result.Result<A, GrpcFailure.GrpcFailure>) => void,
  ) {
    this.#connection = connection
    this.headers = headers
    this.frame = frame
    this.limit = limit
    this.#reply = reply
  }

  /** Reads the response from its stream. */
  listen(session: GrpcSession, stream: ClientHttp2Stream): void {
    this.stream = stream
    stream.on("response", (headers) => this.#onHeaders(headers))
    stream.on("data", (chunk: Buffer) => this.onData(chunk))
    stream.on("trailers", (trailers) => this.#onTrailers(trailers))
    // Required: a reset would otherwise be an uncaught error. The call reads the reason when the stream closes.
    stream.on("error", (error) => (this.#error = error))
    stream.on("close", () => this.#onClose(session, stream))
  }

  /** Ends the call on both sides without an outcome. */
  cancel(): void {
    if (this.isOver) return
    this.#reply = undefined
    this.#reset()
  }

  fail(failure: GrpcFailure.GrpcFailure): void {
    this.settle(Result.fail(failure))
  }

  /** Takes the next bytes of the response. */
  protected abstract onData(chunk: Buffer): void

  /** Called when the trailers have arrived, possibly ahead of the last data. */
  protected abstract onTrailers(trailers: IncomingHttpHeaders): void

  /** Called when the stream has closed before the call was over: the last chance to settle it by its trailers. */
  protected abstract onClosed(): void

  /** Whether the call has an outcome or was cancelled. */
  protected get isOver(): boolean {
    return this.#reply === undefined
  }

  protected settle(outcome: Result.Result<A, GrpcFailure.GrpcFailure>): void {
    const reply = this.#reply
    this.#reply = undefined
    reply?.(outcome)
  }

  /** Ends the call for an error in the response. */
  protected refuse(failure: GrpcFailure.GrpcFailure): void {
    if (this.isOver) return
    this.#reset()
    this.fail(failure)
  }

  protected makeReader(): ResponseMessageReader<Uint8Array> {
    return new ResponseMessageReader(this.limit, allocate)
  }

  /** Ends the call for a message that its reader refuses. `which` names the message. */
  protected refuseMessage({ refusal, length }: ResponseMessageReader<Uint8Array>, subject: string): void {
    const message =
      refusal === "compressed"
        ? "the server sent a compressed message, but the client accepts no compression"
        : `${subject} has ${length} bytes, but maxResponseSize is ${this.limit}`
    this.refuse(GrpcFailure.failure(GrpcCode.INTERNAL, message))
  }

  /** Stops sending the request. A response may come before all of it is sent, and the rest is not read then. */
  protected stopSending(): void {
    if (this.stream?.writableFinished === false) this.stream.close(constants.NGHTTP2_CANCEL)
  }

  #reset(): void {
    this.stream?.close(constants.NGHTTP2_CANCEL)
    // Data that is not read would keep the stream from closing.
    this.stream?.resume()
  }

  #onHeaders(headers: IncomingHttpHeaders): void {
    this.responseHeaders = headers
    // Headers with a status are trailers as well, and nothing follows them.
    if (headers["grpc-status"] !== undefined) return this.#onTrailers(headers)
    const failure = GrpcFailure.fromHeaders(headers)
    if (failure !== undefined) this.refuse(failure)
  }

  #onTrailers(trailers: IncomingHttpHeaders): void {
    this.trailers = trailers
    this.onTrailers(trailers)
  }

  #onClose(session: GrpcSession, stream: ClientHttp2Stream): void {
    session.released()
    if (this.isOver) return
    this.onClosed()
    if (this.isOver) return
    const { rstCode } = stream
    // The server did not process a refused stream (RFC 9113, 8.7), so the call starts again, but only once.
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM && !this.#isRetry && this.responseHeaders === undefined) {
      this.#isRetry = true
      this.#error = undefined
      return this.#connection.start(this)
    }
    const failure = this.#connection.lost(session, this.#error) ?? GrpcFailure.unfinished(rstCode)
    // A stream without an id has waited for the server's limit of streams. GOAWAY refuses streams that come behind it.
    const isUnsent = stream.id === undefined || rstCode === constants.NGHTTP2_REFUSED_STREAM
    this.fail(isUnsent && this.responseHeaders === undefined ? { ...failure, cause: "unsent" } : failure)
  }
}

/** The bytes from `start` to `end` as a plain Uint8Array: `slice` of a Buffer would not copy. */
export const view = (bytes: Uint8Array, start: number, end: number): Uint8Array =>
  new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start)

const noBytes = new Uint8Array(0)

/** Memory of a single message, which is freed with it. */
const allocate = (length: number): Uint8Array =>
  length === 0 ? noBytes : new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
