/**
 * A session on `@nereid/http2`: its socket, and the calls that wait until it is connected. A session without calls in
 * flight is unref'd, so that a finished program exits.
 */
import { connect as connectTcp, isIP, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import {
  ClientConnection,
  type ClientStream,
  type ResponseHandler,
} from "@nereid/http2/internal/client/ClientConnection"
import { ErrorCode, errorName } from "@nereid/http2/internal/frame/ErrorCode"
import type { ServerUrl } from "@nereid/core/internal/wire/ServerUrl"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { fixedLookup } from "../channel/FixedLookup.ts"
import type { CallHeaders, ResponseHeaders } from "./CallHeaders.ts"
import type { GrpcFailure } from "./GrpcFailure.ts"
import { type CallEvents, type CallStream, type GrpcSession, lostFailure } from "./GrpcSession.ts"

/** Bytes that all calls together may be sent before they read them. */
const connectionWindow = 16 * 1024 * 1024

export class OwnSession implements GrpcSession {
  readonly #endpoint: ServerUrl
  readonly #socket: Socket
  /** Undefined until the socket is connected. */
  #http2: ClientConnection | undefined
  #waiting: Array<OwnStream> = []
  /** Streams that are not closed. */
  #open = 0
  #error: Error | undefined
  #isRetired = false
  #isClosed = false
  readonly #onClosed: Array<() => void> = []

  /** `window`: bytes that a call may be sent before it reads them. */
  constructor(settings: ClientSettings, window: number) {
    this.#endpoint = settings.endpoint
    const { connectTimeout } = settings
    const socket = (this.#socket = connect(settings))
    const timer = setTimeout(
      () => socket.destroy(new Error(`no connection within ${connectTimeout} ms`)),
      Math.min(connectTimeout, 2 ** 31 - 1),
    )
    socket.once(settings.endpoint.secure ? "secureConnect" : "connect", () => {
      clearTimeout(timer)
      if ("alpnProtocol" in socket && socket.alpnProtocol !== "h2") {
        return socket.destroy(new Error("the server does not speak HTTP/2"))
      }
      // Detects a peer that vanished.
      socket.setKeepAlive(true, 30_000)
      this.#begin(window)
    })
    socket.on("error", (error) => (this.#error ??= error))
    socket.once("close", () => {
      clearTimeout(timer)
      this.#isClosed = true
      for (const stream of this.#waiting.splice(0)) stream.onClose(ErrorCode.CANCEL, true)
      for (const run of this.#onClosed.splice(0)) run()
    })
  }

  get isUsable(): boolean {
    return !this.#isRetired && !this.#isClosed && !this.#socket.destroyed && this.#http2?.isUsable !== false
  }

  request(headers: CallHeaders, frame: Uint8Array, events: CallEvents): CallStream {
    if (!this.isUsable) throw new Error("the session is closed")
    const stream = new OwnStream(headers, frame, events, (error) => this.#released(error))
    if (this.#open++ === 0) this.#socket.ref()
    if (this.#http2 === undefined) this.#waiting.push(stream)
    else stream.begin(this.#http2)
    return stream
  }

  lost(streamError: Error | undefined): GrpcFailure | undefined {
    const isIntact = this.#error === undefined && !this.#isClosed && !this.#socket.destroyed
    if (isIntact && this.#http2?.isUsable !== false) return undefined
    return lostFailure(this.#endpoint, this.#http2 !== undefined, this.#error ?? streamError)
  }

  onClosed(run: () => void): void {
    if (this.#isClosed) run()
    else this.#onClosed.push(run)
  }

  retire(): void {
    this.#isRetired = true
    this.#http2?.drain()
  }

  destroy(): void {
    if (this.#http2 === undefined) this.#socket.destroy()
    else this.#http2.destroy()
  }

  #begin(window: number): void {
    const http2 = (this.#http2 = new ClientConnection(
      this.#socket,
      { streamWindow: window, connectionWindow },
      {
        onOpen: () => {},
        onGoaway: (code) => {
          if (code !== ErrorCode.NO_ERROR) this.#error ??= new Error(`the server ended it with ${errorName(code)}`)
        },
        onFinished: () => {},
        onClose: () => {},
      },
    ))
    for (const stream of this.#waiting.splice(0)) stream.begin(http2)
    if (this.#open === 0) this.#socket.unref()
    if (this.#isRetired) http2.drain()
  }

  /** A stream has closed. Returns why, if the whole connection is over. */
  #released(isCancelled: boolean): Error | undefined {
    if (--this.#open === 0 && !this.#socket.destroyed) this.#socket.unref()
    return isCancelled ? undefined : (this.#http2?.error ?? this.#error)
  }
}

const connect = ({ endpoint, ip, tls }: ClientSettings): Socket => {
  const { host, port } = endpoint
  const options = { host, port, ...fixedLookup(ip) }
  if (!endpoint.secure) return connectTcp({ ...options, noDelay: true })
  const socket = connectTls({ ...options, servername: isIP(host) === 0 ? host : "", ALPNProtocols: ["h2"], ...tls })
  return socket.setNoDelay(true)
}

/** Not a closure for each event, because a session has many streams. */
class OwnStream implements CallStream, ResponseHandler {
  readonly #headers: CallHeaders
  readonly #frame: Uint8Array
  readonly #events: CallEvents
  readonly #released: (isCancelled: boolean) => Error | undefined
  #stream: ClientStream | undefined
  #isPaused = false
  #isClosed = false

  constructor(
    headers: CallHeaders,
    frame: Uint8Array,
    events: CallEvents,
    released: (isCancelled: boolean) => Error | undefined,
  ) {
    this.#headers = headers
    this.#frame = frame
    this.#events = events
    this.#released = released
  }

  begin(http2: ClientConnection): void {
    if (this.#isClosed) return
    if (!http2.isUsable) return this.onClose(ErrorCode.REFUSED_STREAM, true)
    const { template, others } = this.#headers
    this.#stream = http2.request(this, template, others, [this.#frame], true)
    if (this.#isPaused) this.#stream.pause()
  }

  get isSent(): boolean {
    return this.#stream?.isSent === true
  }

  pause(): void {
    this.#isPaused = true
    this.#stream?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#stream?.resume()
  }

  cancel(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stream?.cancel()
    this.#released(true)
  }

  onHeaders(headers: ResponseHeaders): void {
    this.#events.onHeaders(headers)
  }

  onData(part: Buffer): boolean {
    return this.#events.onData(part)
  }

  onTrailers(headers: ResponseHeaders): void {
    this.#events.onTrailers(headers)
  }

  onEnd(): void {
    this.#events.onEnd()
  }

  onClose(code: number, isUnsent: boolean): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#events.onClose(code, isUnsent, this.#released(false))
  }
}
