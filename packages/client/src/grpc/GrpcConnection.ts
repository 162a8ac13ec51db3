/**
 * gRPC calls with one request message to one server, over one HTTP/2 session that is opened when it is needed and again
 * after it has ended. It handles headers and bytes; GrpcTransport.ts and GrpcChannel.ts handle messages.
 *
 *   none ──first call──► session ──GOAWAY, close, error──► none
 */
import * as GrpcContentType from "@nereid/core/internal/grpc/GrpcContentType"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { prefixLength, writePrefix } from "@nereid/core/internal/grpc/GrpcFrame"
import * as GrpcTimeout from "@nereid/core/internal/grpc/GrpcTimeout"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { connectionLost } from "../channel/ConnectionLost.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import { CallHeaders, type Fields } from "./CallHeaders.ts"
import * as GrpcFailure from "./GrpcFailure.ts"
import type { CallStream, GrpcSession } from "./GrpcSession.ts"
import { NodeSession } from "./NodeSession.ts"
import { OwnSession } from "./OwnSession.ts"
import type { StartableCall } from "./StartableCall.ts"
import { type GrpcReceiver, GrpcStreamCall } from "./GrpcStreamCall.ts"
import { type GrpcOutcome, GrpcUnaryCall } from "./GrpcUnaryCall.ts"

const defaultWindow = 4 * 1024 * 1024

export class GrpcConnection {
  readonly #settings: ClientSettings
  readonly #window: number
  readonly #authority: string
  readonly #isOwn: boolean
  readonly #headers = new Map<string, CallHeaders>()
  readonly #sessions = new Set<GrpcSession>()
  #current: GrpcSession | undefined
  #closed = false

  /** `window`: bytes that a call may be sent before it reads them; 4 MiB for messages that are read as they come. */
  constructor(settings: ClientSettings, window = defaultWindow) {
    this.#settings = settings
    this.#window = window
    this.#isOwn = (settings.http2 ?? process.env["NEREID_HTTP2"]) !== "node"
    this.#authority = ServerUrl.address(settings.endpoint)
  }

  /** The headers of the calls of an RPC. */
  headers(path: string): CallHeaders {
    const known = this.#headers.get(path)
    if (known !== undefined) return known
    const headers = this.repeatedHeaders(path, {})
    this.#headers.set(path, headers)
    return headers
  }

  /** Headers with further fields, which many calls share. */
  repeatedHeaders(path: string, more: Fields): CallHeaders {
    return CallHeaders.repeated(this.#fields(path, more))
  }

  /** Headers with further fields, for one call. */
  headersOnce(path: string, more: Fields): CallHeaders {
    return CallHeaders.once(this.#fields(path, more))
  }

  /**
   * Sends a message that stands behind `prefixLength` free bytes. The reply is called once, possibly before this
   * returns, and not after the call was cancelled, which resets its stream.
   */
  call(
    headers: CallHeaders,
    frame: Uint8Array,
    timeoutMs: number | undefined,
    reply: (outcome: GrpcOutcome) => void,
  ): GrpcUnaryCall {
    writePrefix(frame, 0, frame.length - prefixLength)
    const call = new GrpcUnaryCall(this, timed(headers, timeoutMs), frame, this.#settings.maxResponseSize, reply)
    this.start(call)
    return call
  }

  /** The same for an RPC that answers with any number of messages. */
  stream(
    headers: CallHeaders,
    frame: Uint8Array,
    timeoutMs: number | undefined,
    receiver: GrpcReceiver,
  ): GrpcStreamCall {
    writePrefix(frame, 0, frame.length - prefixLength)
    const call = new GrpcStreamCall(this, timed(headers, timeoutMs), frame, this.#settings.maxResponseSize, receiver)
    this.start(call)
    return call
  }

  /** Gives a call its stream, the first one or another, and sends its message. */
  start(call: StartableCall): void {
    if (this.#closed) return call.fail(this.#unavailable("is"))
    let session: GrpcSession
    let stream: CallStream
    try {
      session = this.#session()
      stream = session.request(call.headers, call.frame, call)
    } catch (error) {
      const message = connectionLost(this.#settings.endpoint, true, error)
      return call.fail(GrpcFailure.failure(GrpcCode.UNAVAILABLE, message, "unsent"))
    }
    call.begin(session, stream)
  }

  /** Returns the reason why a session no longer responds; undefined if the session is intact. */
  lost(session: GrpcSession, streamError: Error | undefined): GrpcFailure.GrpcFailure | undefined {
    return this.#closed ? this.#unavailable("was") : session.lost(streamError)
  }

  /** Ends the session, and the calls on it. */
  close(): Promise<void> {
    this.#closed = true
    this.#current = undefined
    const ended = [...this.#sessions].map((session) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      session.onClosed(resolve)
      session.destroy()
      return promise
    })
    return Promise.all(ended).then(() => {})
  }

  #fields(path: string, more: Fields): Fields {
    return {
      ":method": "POST",
      ":scheme": this.#settings.endpoint.secure ? "https" : "http",
      ":path": path,
      ":authority": this.#authority,
      ...this.#settings.headers,
      ...more,
      "content-type": GrpcContentType.protobuf,
      te: "trailers",
      "user-agent": "nereid",
    }
  }

  #unavailable(tense: "is" | "was"): GrpcFailure.GrpcFailure {
    return GrpcFailure.failure(GrpcCode.UNAVAILABLE, `the client of ${this.#authority} ${tense} closed`)
  }

  #session(): GrpcSession {
    const current = this.#current
    if (current?.isUsable === true) return current
    current?.retire()
    const session = this.#isOwn
      ? new OwnSession(this.#settings, this.#window)
      : new NodeSession(this.#settings, this.#window)
    this.#sessions.add(session)
    session.onClosed(() => {
      this.#sessions.delete(session)
      if (this.#current === session) this.#current = undefined
    })
    return (this.#current = session)
  }
}

const timed = (headers: CallHeaders, timeoutMs: number | undefined): CallHeaders =>
  timeoutMs === undefined ? headers : headers.with({ "grpc-timeout": GrpcTimeout.print(timeoutMs) })
