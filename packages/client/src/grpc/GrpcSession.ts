/**
 * One HTTP/2 session to a server, with the reason if it is lost. GrpcConnection.ts opens and replaces sessions. A
 * session without calls in flight is unref'd, so that a finished program exits.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { connectionLost } from "../channel/ConnectionLost.ts"
import { fixedLookup } from "../channel/FixedLookup.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import * as GrpcFailure from "./GrpcFailure.ts"

/** Stream ids are odd and below 2^31; a session that comes near their end is replaced. */
const maxCalls = 2 ** 29

const mebibyte = 1024 * 1024

export class GrpcSession {
  readonly #http2: ClientHttp2Session
  readonly #endpoint: ServerUrl.ServerUrl
  #calls = 0
  /** Streams that are not closed. */
  #open = 0
  #connected = false
  #error: Error | undefined

  /** `window`: bytes that a call may be sent before it reads them. */
  constructor({ endpoint, ip, tls, connectTimeout }: ClientSettings, window: number) {
    this.#endpoint = endpoint
    const http2 = connect(ServerUrl.origin(endpoint), {
      settings: { initialWindowSize: window, enablePush: false },
      // Node's 10 MB would reset calls with large tensors; what bounds them is maxInFlight and maxResponseSize.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      ...tls,
      ...fixedLookup(ip),
    })
    const timer = setTimeout(
      () => http2.destroy(new Error(`no connection within ${connectTimeout} ms`)),
      Math.min(connectTimeout, 2 ** 31 - 1),
    )
    http2.once("connect", (_, socket) => {
      clearTimeout(timer)
      this.#connected = true
      // Emitted a tick later, in which it may have been destroyed.
      if (http2.destroyed) return
      http2.setLocalWindowSize(16 * mebibyte)
      // Detects a peer that vanished.
      socket.setKeepAlive(true, 30_000)
    })
    http2.on("error", (error) => (this.#error ??= error))
    http2.once("close", () => clearTimeout(timer))
    this.#http2 = http2
  }

  /** Whether the session accepts another call. */
  get isUsable(): boolean {
    return !this.#http2.closed && !this.#http2.destroyed && this.#calls < maxCalls
  }

  /**
   * Opens a stream for one call, which must call `released` when the stream has closed.
   * @throws if the headers are invalid, or the session is no longer usable
   */
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    const stream = this.#http2.request(headers)
    this.#calls += 1
    if (this.#open++ === 0) this.#http2.ref()
    return stream
  }

  released(): void {
    if (--this.#open === 0 && !this.#http2.destroyed) this.#http2.unref()
  }

  /** Returns why the session was lost, given the error of a stream; undefined while it is open. */
  lost(streamError: Error | undefined): GrpcFailure.GrpcFailure | undefined {
    if (!this.#http2.destroyed && !this.#http2.closed && this.#error === undefined) return undefined
    const message = connectionLost(this.#endpoint, this.#connected, this.#error ?? streamError)
    return GrpcFailure.failure(GrpcCode.UNAVAILABLE, message, this.#connected ? "lost" : "unsent")
  }

  onClosed(run: () => void): void {
    if (this.#http2.destroyed) run()
    else this.#http2.once("close", run)
  }

  /** Takes no more calls; those on it go on to their ends. */
  retire(): void {
    if (!this.#http2.closed) this.#http2.close()
  }

  destroy(): void {
    this.#http2.destroy()
  }
}
