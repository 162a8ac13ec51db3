/**
 * Lifecycle of the HTTP/2 stream of a unary or streaming call, from its start to the outcome. If the server refuses the
 * stream, the call starts once more. GrpcConnection.ts opens streams and writes requests. GrpcUnaryCall.ts and
 * GrpcStreamCall.ts read messages.
 */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { ResponseMessageReader } from "@nereid/core/internal/grpc/ResponseMessageReader"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import type { CallHeaders, ResponseHeaders } from "./CallHeaders.ts"
import * as GrpcFailure from "./GrpcFailure.ts"
import type { CallStream, GrpcSession } from "./GrpcSession.ts"
import type { CallConnection, StartableCall } from "./StartableCall.ts"

/** `A` is the outcome of a call that succeeds. */
export abstract class ClientCall<A> implements StartableCall {
  readonly headers: CallHeaders
  /** The request message behind its prefix. */
  readonly frame: Uint8Array
  /** Largest response message in bytes. */
  protected readonly limit: number
  protected stream: CallStream | undefined
  protected responseHeaders: ResponseHeaders | undefined
  protected trailers: ResponseHeaders | undefined
  readonly #connection: CallConnection
  /** Takes the outcome; undefined once the call is over. */
  #reply: ((outcome: Result.Result<A, GrpcFailure.GrpcFailure>) => void) | undefined
  /** Whether this is the second stream. */
  #isRetry = false
  #session: GrpcSession | undefined

  constructor(
    connection: CallConnection,
    headers: CallHeaders,
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

  begin(session: GrpcSession, stream: CallStream): void {
    this.#session = session
    this.stream = stream
  }

  /** Ends the call on both sides without an outcome. */
  cancel(): void {
    if (this.isOver) return
    this.#reply = undefined
    this.stream?.cancel()
  }

  fail(failure: GrpcFailure.GrpcFailure): void {
    this.settle(Result.fail(failure))
  }

  /** Takes the next bytes of the response. Returns whether it may still read them after the call. */
  abstract onData(chunk: Uint8Array): boolean

  /** Called when the whole response was read. */
  abstract onEnd(): void

  /** Called when the trailers have arrived, possibly ahead of the last data. */
  protected abstract onStatus(trailers: ResponseHeaders): void

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
    this.stream?.cancel()
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
    if (this.stream?.isSent === false) this.stream.cancel()
  }

  onHeaders(headers: ResponseHeaders): void {
    this.responseHeaders = headers
    // Headers with a status are trailers as well, and nothing follows them.
    if (headers["grpc-status"] !== undefined) return this.onTrailers(headers)
    const failure = GrpcFailure.fromHeaders(headers)
    if (failure !== undefined) this.refuse(failure)
  }

  onTrailers(trailers: ResponseHeaders): void {
    this.trailers = trailers
    this.onStatus(trailers)
  }

  onClose(code: number | undefined, isUnsent: boolean, error: Error | undefined): void {
    if (this.isOver) return
    this.onClosed()
    if (this.isOver) return
    // The server did not process a refused stream (RFC 9113, 8.7), so the call starts again, but only once.
    if (code === ErrorCode.REFUSED_STREAM && !this.#isRetry && this.responseHeaders === undefined) {
      this.#isRetry = true
      return this.#connection.start(this)
    }
    const session = this.#session
    const failure =
      (session === undefined ? undefined : this.#connection.lost(session, error)) ?? GrpcFailure.unfinished(code)
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
