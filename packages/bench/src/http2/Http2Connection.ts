/**
 * Client connection of a load to an HTTP/2 server, over `@nereid/http2`: node:http2 costs more per request than a bare
 * server, so a load would measure itself. Says in words why a request failed, and whether the server has seen it.
 */
import {
  ClientConnection,
  type ClientStream,
  type ResponseHandler,
} from "@nereid/http2/internal/client/ClientConnection"
import type { Headers } from "@nereid/http2/internal/connection/Connection"
import { ErrorCode, errorName } from "@nereid/http2/internal/frame/ErrorCode"
import type { FieldList } from "@nereid/http2/internal/hpack/HeaderDecoder"
import { HeaderTemplate } from "@nereid/http2/internal/hpack/HeaderEncoder"
import * as Address from "../target/Address.ts"

export type { FieldList, Headers }

/** Callbacks of one request. `last` marks the end of the response. */
export interface Http2StreamHandler {
  readonly onHeaders: (headers: Headers, last: boolean) => void
  /** Part of the body, possibly empty. Its memory may be freed after the call. */
  readonly onData: (part: Buffer, last: boolean) => void
  /** Reset, or lost with its connection; called instead of a `last`. `unseen`: the server has not begun with it. */
  readonly onAbort: (reason: string, unseen: boolean) => void
}

/** The reason of a request that the server has refused, and has not begun. */
export const refused = `the server reset the stream: ${errorName(ErrorCode.REFUSED_STREAM)}`

/** Bytes that a server may send before it hears that they were taken: so many that it never waits. */
const window = 2 ** 30

/** Time in which a server must send its settings, in milliseconds. */
const settingsTimeout = 10_000

export class Http2Connection {
  readonly #http2: ClientConnection
  readonly #template: HeaderTemplate
  readonly #opened = Promise.withResolvers<void>()
  #goaway: { readonly reason: string; readonly isGraceful: boolean } | undefined
  #lost = "the server closed the connection"
  #isClosed = false

  private constructor(socket: Awaited<ReturnType<typeof Address.connect>>, fields: FieldList) {
    this.#template = new HeaderTemplate(fields)
    socket.on("error", ({ message }) => (this.#lost = `the connection was lost: ${message}`))
    this.#http2 = new ClientConnection(
      socket,
      { streamWindow: window, connectionWindow: window },
      {
        onOpen: () => this.#opened.resolve(),
        onGoaway: (code, text) => {
          const reason = `the server ended the connection: ${errorName(code)}${text === "" ? "" : `, ${text}`}`
          // After a graceful end, requests that the server has not begun do not fail; they are sent elsewhere.
          this.#goaway = { reason, isGraceful: code === ErrorCode.NO_ERROR }
        },
        onFinished: () => this.#opened.reject(new Error(this.#lostReason)),
        onClose: () => {},
      },
    )
  }

  /**
   * Opens a connection. Resolves after the server's settings arrive, which apply to every request. `fields` are the
   * default headers of requests.
   * @throws Error if the server is unreachable or does not support HTTP/2
   */
  static async open(address: Address.Address, fields: FieldList): Promise<Http2Connection> {
    const connection = new Http2Connection(await Address.connect(address, "h2"), fields)
    const timer = setTimeout(() => {
      connection.#lost = `it sent no settings within ${settingsTimeout / 1000} s`
      connection.#http2.destroy()
    }, settingsTimeout)
    try {
      await connection.#opened.promise
    } catch (error) {
      throw new Error(`${Address.print(address)} does not speak HTTP/2: ${Address.reason(error)}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
    return connection
  }

  /** Whether another request may be sent; false after a GOAWAY. */
  get accepts(): boolean {
    return !this.#isClosed && this.#http2.isUsable
  }

  /**
   * Begins a request, now or when the server's limit allows it. `ended`: the body is complete, or there is none.
   * `fields` replace the default headers, `added` follow them. Returns undefined if the connection accepts no requests.
   */
  request(
    handler: Http2StreamHandler,
    body: ReadonlyArray<Buffer>,
    ended: boolean,
    fields?: FieldList,
    added: FieldList = none,
  ): ClientStream | undefined {
    if (!this.accepts) {
      handler.onAbort(this.#isClosed ? "the connection is closed" : this.#lostReason, true)
      return undefined
    }
    const response = new Response(handler, this)
    if (fields === undefined) return this.#http2.request(response, this.#template, added, body, ended)
    return this.#http2.request(response, undefined, [...fields, ...added], body, ended)
  }

  /** Ends all streams without calling their handlers. */
  close(): void {
    this.#isClosed = true
    this.#http2.close()
  }

  /** A request was reset, or lost with the connection. */
  aborted(handler: Http2StreamHandler, code: number, isUnsent: boolean): void {
    if (this.#isClosed) return
    if (isUnsent && this.#goaway !== undefined) handler.onAbort(this.#goaway.reason, this.#goaway.isGraceful)
    else if (this.#http2.isOver) handler.onAbort(this.#lostReason, false)
    else handler.onAbort(`the server reset the stream: ${errorName(code)}`, false)
  }

  get #lostReason(): string {
    const { error } = this.#http2
    if (error !== undefined) return `the server violated the protocol: ${error.message}`
    return this.#goaway?.reason ?? this.#lost
  }
}

/** Passes on the end of a response with its last part. */
class Response implements ResponseHandler {
  readonly #handler: Http2StreamHandler
  readonly #connection: Http2Connection
  #hasEnded = false

  constructor(handler: Http2StreamHandler, connection: Http2Connection) {
    this.#handler = handler
    this.#connection = connection
  }

  onHeaders(headers: Headers, isLast: boolean): void {
    this.#hasEnded = isLast
    this.#handler.onHeaders(headers, isLast)
  }

  onData(part: Buffer): false {
    this.#handler.onData(part, false)
    return false
  }

  onTrailers(headers: Headers): void {
    this.#hasEnded = true
    this.#handler.onHeaders(headers, true)
  }

  onEnd(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#handler.onData(noBytes, true)
  }

  onClose(code: number, isUnsent: boolean): void {
    if (!this.#hasEnded) this.#connection.aborted(this.#handler, code, isUnsent)
  }
}

const none: FieldList = []

const noBytes = Buffer.alloc(0)
