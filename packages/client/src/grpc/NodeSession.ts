/**
 * A session on node:http2, with the reason if it is lost. A session without calls in flight is unref'd, so that a
 * finished program exits.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { fixedLookup } from "../channel/FixedLookup.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import type { CallHeaders } from "./CallHeaders.ts"
import type { GrpcFailure } from "./GrpcFailure.ts"
import { type CallEvents, type CallStream, type GrpcSession, lostFailure } from "./GrpcSession.ts"

/** Stream ids are odd and below 2^31; a session that comes near their end is replaced. */
const maxCalls = 2 ** 29

const mebibyte = 1024 * 1024

export class NodeSession implements GrpcSession {
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

  get isUsable(): boolean {
    return !this.#http2.closed && !this.#http2.destroyed && this.#calls < maxCalls
  }

  request(headers: CallHeaders, frame: Uint8Array, events: CallEvents): CallStream {
    const stream = this.#http2.request(headers.all)
    this.#calls += 1
    if (this.#open++ === 0) this.#http2.ref()
    stream.on("close", () => {
      if (--this.#open === 0 && !this.#http2.destroyed) this.#http2.unref()
    })
    listen(stream, events)
    stream.end(frame)
    return new NodeStream(stream)
  }

  lost(streamError: Error | undefined): GrpcFailure | undefined {
    if (!this.#http2.destroyed && !this.#http2.closed && this.#error === undefined) return undefined
    return lostFailure(this.#endpoint, this.#connected, this.#error ?? streamError)
  }

  onClosed(run: () => void): void {
    if (this.#http2.destroyed) run()
    else this.#http2.once("close", run)
  }

  retire(): void {
    if (!this.#http2.closed) this.#http2.close()
  }

  destroy(): void {
    this.#http2.destroy()
  }
}

/** Passes on the events of a stream. */
const listen = (stream: ClientHttp2Stream, events: CallEvents): void => {
  let lastError: Error | undefined
  stream.on("response", (headers) => events.onHeaders(headers))
  stream.on("data", (chunk: Buffer) => events.onData(chunk))
  stream.on("trailers", (trailers) => events.onTrailers(trailers))
  stream.on("end", () => events.onEnd())
  // Required: a reset would otherwise be an uncaught error. The call reads the reason when the stream closes.
  stream.on("error", (error) => (lastError = error))
  stream.on("close", () => {
    const { id, rstCode } = stream
    // A stream without an id has waited for the server's limit of streams. GOAWAY refuses streams that come behind it.
    events.onClose(rstCode, id === undefined || rstCode === constants.NGHTTP2_REFUSED_STREAM, lastError)
  })
}

class NodeStream implements CallStream {
  readonly #stream: ClientHttp2Stream

  constructor(stream: ClientHttp2Stream) {
    this.#stream = stream
  }

  get isSent(): boolean {
    return this.#stream.writableFinished
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  cancel(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL)
    // Data that is not read would keep the stream from closing.
    this.#stream.resume()
  }
}
