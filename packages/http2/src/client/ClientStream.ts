/**
 * One request of a client and its response. ClientConnection.ts opens its stream, at once or when the server has room
 * for one more.
 */
import type { Connection, Headers, Stream, StreamHandler } from "../connection/Connection.ts"
import { ErrorCode } from "../frame/ErrorCode.ts"
import type { FieldList } from "../hpack/HeaderDecoder.ts"
import type { HeaderTemplate } from "../hpack/HeaderEncoder.ts"

/** Events of a response. `onClose` always comes, once, and is the last; none comes after `cancel`. */
export interface ResponseHandler {
  /** The head. `isLast`: it is also the end. */
  readonly onHeaders: (headers: Headers, isLast: boolean) => void
  /**
   * A part of the body: a view on the chunk that was received. Returns whether the part may still be read after the
   * call. It is not overwritten then; otherwise its memory may be freed.
   */
  readonly onData: (part: Buffer) => boolean
  readonly onTrailers: (headers: Headers) => void
  /** The response is complete. */
  readonly onEnd: () => void
  /** NO_ERROR after the end, or the code of a reset. `isUnsent`: the server has not begun with the request. */
  readonly onClose: (code: number, isUnsent: boolean) => void
}

export class ClientStream implements StreamHandler {
  readonly #connection: Connection
  readonly #template: HeaderTemplate | undefined
  readonly #fields: FieldList
  #handler: ResponseHandler | undefined
  /** Undefined until the server has room. */
  #stream: Stream | undefined
  /** The body until then. */
  #body: Array<Uint8Array>
  #isEnded: boolean
  #isPaused = false
  #hasResponse = false

  /** `isEnded`: the body is complete. */
  constructor(
    connection: Connection,
    handler: ResponseHandler,
    template: HeaderTemplate | undefined,
    fields: FieldList,
    body: ReadonlyArray<Uint8Array>,
    isEnded: boolean,
  ) {
    this.#connection = connection
    this.#handler = handler
    this.#template = template
    this.#fields = fields
    this.#body = [...body]
    this.#isEnded = isEnded
  }

  /** Whether the request was sent completely. */
  get isSent(): boolean {
    return this.#stream?.isLocalEnded === true
  }

  get isCancelled(): boolean {
    return this.#handler === undefined
  }

  /** Opens the stream. The connection must have room. */
  begin(): void {
    const body = this.#body
    this.#body = []
    const isLast = this.#isEnded && body.length === 0
    const stream = (this.#stream = this.#connection.open(this, this.#template, this.#fields, isLast))
    if (this.#isPaused) this.#connection.pause(stream)
    if (isLast) return
    for (const part of body) this.#connection.data(stream, part)
    if (this.#isEnded) this.#connection.end(stream)
  }

  /** Sends more of the body. The bytes must not change any more. */
  write(parts: ReadonlyArray<Uint8Array>, isLast: boolean): void {
    const stream = this.#stream
    this.#isEnded = isLast
    if (stream === undefined) return void this.#body.push(...parts)
    for (const part of parts) this.#connection.data(stream, part)
    if (isLast) this.#connection.end(stream)
  }

  /** Holds the response back. Its window fills, and the server waits. */
  pause(): void {
    this.#isPaused = true
    if (this.#stream !== undefined) this.#connection.pause(this.#stream)
  }

  resume(): void {
    this.#isPaused = false
    if (this.#stream !== undefined) this.#connection.resume(this.#stream)
  }

  /** Ends the request on both sides. A request that has not begun is never sent. */
  cancel(): void {
    this.#handler = undefined
    this.#body = []
    if (this.#stream !== undefined) this.#connection.reset(this.#stream, ErrorCode.CANCEL)
  }

  onHeaders(headers: Headers, isLast: boolean): void {
    this.#hasResponse = true
    this.#handler?.onHeaders(headers, isLast)
  }

  onData(part: Buffer): boolean {
    return this.#handler?.onData(part) ?? false
  }

  onTrailers(headers: Headers): void {
    this.#handler?.onTrailers(headers)
  }

  onEnd(): void {
    this.#handler?.onEnd()
    const stream = this.#stream
    // The response is there, so nobody reads the rest of the request.
    if (stream !== undefined && !stream.isLocalEnded) this.#connection.reset(stream, ErrorCode.CANCEL)
  }

  onDrain(): void {}

  onSent(): void {}

  onClose(code: number): void {
    const handler = this.#handler
    this.#handler = undefined
    handler?.onClose(code, this.#stream === undefined || (code === ErrorCode.REFUSED_STREAM && !this.#hasResponse))
  }
}
