/**
 * Unary gRPC calls to one server, over one HTTP/2 session that is opened when it is needed and again after it has ended.
 * It knows paths, headers and bytes, but no message; GrpcTransport.ts and GrpcChannel.ts do.
 *
 *   none ──first call──► session ──GOAWAY, close, error──► none
 *                          │ no call in flight: unref'd, so that a finished program exits
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from "node:http2"
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/Inference"
import type { Settings } from "./ClientOptions.ts"
import { connectionLost } from "./ConnectionLost.ts"
import * as Endpoint from "./Endpoint.ts"
import { GrpcCall, type GrpcOutcome, prefixLength } from "./GrpcCall.ts"
import * as GrpcStatus from "./GrpcStatus.ts"

/** Stream ids are odd and below 2^31; a session that comes near their end is replaced. */
const callsPerSession = 2 ** 29

const mebibyte = 1024 * 1024

interface Session {
  readonly http2: ClientHttp2Session
  calls: number
  /** Streams that are not closed. */
  open: number
  connected: boolean
  error: Error | undefined
}

export class GrpcConnection {
  readonly #settings: Settings
  readonly #authority: string
  readonly #sessions = new Set<Session>()
  #current: Session | undefined
  #closed = false

  constructor(settings: Settings) {
    this.#settings = settings
    this.#authority = Endpoint.address(settings.endpoint)
  }

  /**
   * Sends a message that stands behind `prefixLength` free bytes. The reply comes once, perhaps before this returns, and
   * not after the cancel, which resets the stream.
   */
  call(
    path: string,
    frame: Uint8Array,
    headers: OutgoingHttpHeaders,
    timeoutMs: number | undefined,
    reply: (outcome: GrpcOutcome) => void,
  ): Cancel {
    // Not compressed, which is 0, and the length of the message.
    frame[0] = 0
    new DataView(frame.buffer, frame.byteOffset).setUint32(1, frame.length - prefixLength)
    let cancelled = false
    let call: GrpcCall | undefined
    const attempt = (last: boolean) => {
      const started = this.#start(path, frame, headers, timeoutMs, (outcome, stream) => {
        if (cancelled) return
        // A refused stream was not processed (RFC 9113, 8.7), so it may be sent again: once, it may be refused for good.
        const refused = Result.isFailure(outcome) && stream.rstCode === constants.NGHTTP2_REFUSED_STREAM
        if (refused && !last && call?.answered === false && !this.#closed) attempt(true)
        else reply(outcome)
      })
      if (started instanceof GrpcCall) call = started
      else reply(Result.fail(started))
    }
    attempt(false)
    return () => {
      if (cancelled) return
      cancelled = true
      call?.cancel()
    }
  }

  /** Ends the session, and the calls on it. */
  close(): Promise<void> {
    this.#closed = true
    this.#current = undefined
    const ended = [...this.#sessions].map(({ http2 }) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (http2.destroyed) resolve()
      else http2.once("close", resolve).destroy()
      return promise
    })
    return Promise.all(ended).then(() => {})
  }

  #start(
    path: string,
    frame: Uint8Array,
    headers: OutgoingHttpHeaders,
    timeoutMs: number | undefined,
    reply: (outcome: GrpcOutcome, stream: ClientHttp2Stream) => void,
  ): GrpcCall | GrpcStatus.GrpcFailure {
    if (this.#closed) return GrpcStatus.failure(GrpcCode.UNAVAILABLE, `the client of ${this.#authority} is closed`)
    let session: Session
    let stream: ClientHttp2Stream
    try {
      session = this.#session()
      stream = session.http2.request(this.#headers(path, headers, timeoutMs))
    } catch (error) {
      return GrpcStatus.failure(GrpcCode.UNAVAILABLE, connectionLost(this.#settings.endpoint, true, error))
    }
    session.calls += 1
    if (session.open++ === 0) session.http2.ref()
    const lost = (error: Error | undefined) => this.#lost(session, error)
    const call = new GrpcCall(stream, this.#settings.maxResponseSize, lost, (outcome) => reply(outcome, stream))
    stream.once("close", () => {
      if (--session.open === 0 && !session.http2.destroyed) session.http2.unref()
    })
    stream.end(frame)
    return call
  }

  #headers(path: string, headers: OutgoingHttpHeaders, timeoutMs: number | undefined): OutgoingHttpHeaders {
    const all: OutgoingHttpHeaders = {
      ":method": "POST",
      ":path": path,
      ...this.#settings.headers,
      ...headers,
      "content-type": "application/grpc+proto",
      te: "trailers",
      "user-agent": "nereid",
    }
    if (timeoutMs !== undefined) all["grpc-timeout"] = GrpcStatus.timeoutHeader(timeoutMs)
    return all
  }

  #session(): Session {
    const current = this.#current
    if (current !== undefined && !current.http2.closed && !current.http2.destroyed && current.calls < callsPerSession) {
      return current
    }
    // Its calls go on to their ends.
    if (current !== undefined && !current.http2.closed) current.http2.close()
    return (this.#current = this.#open())
  }

  #open(): Session {
    const { endpoint, tls, connectTimeout } = this.#settings
    const http2 = connect(Endpoint.origin(endpoint), {
      settings: { initialWindowSize: 4 * mebibyte, enablePush: false },
      // Node's 10 MB would reset calls with large tensors; what bounds them is maxInFlight and maxResponseSize.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      ...tls,
    })
    const session: Session = { http2, calls: 0, open: 0, connected: false, error: undefined }
    this.#sessions.add(session)
    const timer = setTimeout(
      () => http2.destroy(new Error(`no connection within ${connectTimeout} ms`)),
      Math.min(connectTimeout, 2 ** 31 - 1),
    )
    http2.once("connect", (_, socket) => {
      clearTimeout(timer)
      session.connected = true
      // Emitted a tick later, in which it may have been destroyed.
      if (http2.destroyed) return
      http2.setLocalWindowSize(16 * mebibyte)
      // So that a peer that vanished without a word is noticed.
      socket.setKeepAlive(true, 30_000)
    })
    http2.on("error", (error) => (session.error ??= error))
    http2.once("close", () => {
      clearTimeout(timer)
      this.#sessions.delete(session)
      if (this.#current === session) this.#current = undefined
    })
    return session
  }

  #lost({ http2, connected, error }: Session, own: Error | undefined): GrpcStatus.GrpcFailure | undefined {
    if (this.#closed) return GrpcStatus.failure(GrpcCode.UNAVAILABLE, `the client of ${this.#authority} was closed`)
    if (!http2.destroyed && !http2.closed && error === undefined) return undefined
    return GrpcStatus.failure(GrpcCode.UNAVAILABLE, connectionLost(this.#settings.endpoint, connected, error ?? own))
  }
}
