/**
 * A stream of `@nereid/http2` with the methods of node's own HTTP/2 streams that its request and response classes use.
 * Everything but plain inference is handled through these classes, on either implementation: Connect expects them.
 */
import type {
  Http2ServerRequest,
  Http2ServerResponse,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
  ServerHttp2Stream,
} from "node:http2"
import { Duplex } from "node:stream"
import type { Connection, Headers, Stream, StreamHandler } from "@nereid/http2/internal/connection/Connection"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import type { EngineSession } from "./EngineSession.ts"
import type { RequestHandler } from "./GrpcHttp2.ts"

/** The members of a stream that node's classes, and the handlers, use. */
type NodeStream = Duplex &
  Pick<
    ServerHttp2Stream,
    "aborted" | "additionalHeaders" | "close" | "headersSent" | "id" | "respond" | "rstCode" | "sendTrailers"
  >

/** Node's classes for such a stream. TypeScript permits narrower parameters only for methods. */
interface NodeClasses {
  request(stream: NodeStream, headers: IncomingHttpHeaders, fields: ReadonlyArray<string>): Http2ServerRequest
  response(stream: NodeStream): Http2ServerResponse
}

/** Loads node:http2 with the first request, because it would add 10 MB to every server. */
const http2 = () => process.getBuiltinModule("node:http2")

const nodeClasses: NodeClasses = {
  request: (stream: ServerHttp2Stream, headers, fields) =>
    new (http2().Http2ServerRequest)(stream, headers, {}, fields),
  response: (stream: ServerHttp2Stream) => new (http2().Http2ServerResponse)(stream),
}

/** Of a request. */
interface Head {
  readonly headers: Headers
  /** Whether it has no body. */
  readonly isLast: boolean
  /** Names and values as they came. */
  readonly fields: ReadonlyArray<string>
}

/** Makes a request of the stream, and passes it to `handler`. */
export const attach = (
  connection: Connection,
  session: EngineSession,
  stream: Stream,
  { headers, isLast, fields }: Head,
  handler: RequestHandler,
): EngineNodeStream => {
  const nodeStream = new EngineNodeStream(connection, session, stream, headers[":method"] === "HEAD", isLast)
  stream.handler = nodeStream
  const request = nodeClasses.request(nodeStream, { ...headers }, fields)
  const response = nodeClasses.response(nodeStream)
  // Node's own property reads it from an internal property of its sessions.
  const socket = { value: session.socket }
  Object.defineProperty(request, "socket", socket)
  Object.defineProperty(response, "socket", socket)
  if (headers[":method"] === "CONNECT") {
    response.statusCode = 405
    response.end()
  } else if (headers["expect"] !== undefined && headers["expect"] !== "100-continue") {
    response.statusCode = 417
    response.end()
  } else handler(request, response)
  return nodeStream
}

export class EngineNodeStream extends Duplex implements NodeStream, StreamHandler {
  readonly session: EngineSession
  readonly headRequest: boolean
  readonly id: number
  headersSent = false
  aborted = false
  rstCode: number = ErrorCode.NO_ERROR
  readonly #connection: Connection
  readonly #stream: Stream
  #waitsForTrailers = false
  /** Whether the response has no body, whatever is written. */
  #hasNoBody = false
  #hasReceivedEnd = false
  /** Continues a write that waits for the client to read. */
  #written: (() => void) | undefined
  /** Ends the writable side, once everything was sent. */
  #sent: (() => void) | undefined
  #onStreamClosed: ((hasEnded: boolean) => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(connection: Connection, session: EngineSession, stream: Stream, headRequest: boolean, isLast: boolean) {
    super({ emitClose: true })
    this.#connection = connection
    this.session = session
    this.#stream = stream
    this.id = stream.id
    this.headRequest = headRequest
    // A request without a body has ended before its handler reads.
    if (isLast) this.onEnd()
    this.on("error", () => {})
  }

  /** Calls `run` once the stream has closed, also if it has already. `hasEnded`: after the whole response. */
  onStreamClosed(run: (hasEnded: boolean) => void): void {
    if (this.#stream.isClosed) run(this.#stream.isLocalEnded)
    else this.#onStreamClosed = run
  }

  /** Resets the stream of a client that does not read for so long. `stalled` receives the bytes that wait. */
  limitSending(milliseconds: number, stalled: (size: number) => void): void {
    this.setTimeout(milliseconds, () => {
      if (!this.writableEnded && this.writableLength === 0) return
      stalled(this.writableLength)
      this.close(ErrorCode.CANCEL)
    })
  }

  /** Calls `run` after each time without activity on the connection. */
  setTimeout(milliseconds: number, run: () => void): void {
    if (this.#stream.isClosed) return
    let sent = this.session.bytesWritten
    let received = this.session.bytesRead
    const check = () => {
      const { bytesWritten, bytesRead } = this.session
      if (bytesWritten === sent && bytesRead === received) run()
      sent = bytesWritten
      received = bytesRead
      if (!this.#stream.isClosed) this.#timer = setTimeout(check, delay)
    }
    const delay = Math.min(milliseconds, 2 ** 31 - 1)
    this.#timer = setTimeout(check, delay)
  }

  respond(headers: OutgoingHttpHeaders = {}, options: ResponseOptions = {}): void {
    if (this.headersSent || this.#stream.isClosed) return
    this.headersSent = true
    this.#waitsForTrailers = options.waitForTrailers === true
    const status = Number(headers[":status"])
    this.#hasNoBody = this.headRequest || status === 204 || status === 205 || status === 304
    const dated = options.sendDate === true && headers["date"] === undefined
    const all = dated ? { ...headers, date: new Date().toUTCString() } : headers
    this.#connection.head(this.#stream, undefined, fieldsOf(all), this.#hasNoBody)
  }

  additionalHeaders(headers: OutgoingHttpHeaders): void {
    this.#connection.head(this.#stream, undefined, fieldsOf(headers), false)
  }

  sendTrailers(headers: OutgoingHttpHeaders): void {
    const fields = fieldsOf(headers)
    this.#connection.end(this.#stream, fields.length === 0 ? undefined : { template: undefined, fields })
  }

  /** Resets the stream. */
  close(code: number = ErrorCode.NO_ERROR): void {
    if (this.#stream.isClosed) return
    this.#connection.reset(this.#stream, code)
  }

  onHeaders(): void {}

  onData(part: Buffer): true {
    if (!this.push(part)) this.#connection.pause(this.#stream)
    return true
  }

  onTrailers(headers: Headers): void {
    this.emit("trailers", { ...headers }, 0, Object.entries(headers).flat(2))
  }

  onEnd(): void {
    if (this.#hasReceivedEnd) return
    this.#hasReceivedEnd = true
    this.push(null)
  }

  onDrain(): void {
    const written = this.#written
    this.#written = undefined
    written?.()
  }

  onSent(): void {
    const sent = this.#sent
    this.#sent = undefined
    sent?.()
  }

  onClose(code: number): void {
    clearTimeout(this.#timer)
    this.rstCode = code
    const hasEnded = this.#stream.isLocalEnded
    this.#onStreamClosed?.(hasEnded)
    this.onSent()
    if (hasEnded && this.#stream.isRemoteEnded && code === ErrorCode.NO_ERROR) {
      this.onEnd()
      // A body that nobody reads would keep the stream from closing.
      if (this.readableFlowing === null) this.resume()
      this.onDrain()
      return
    }
    if (!hasEnded) {
      this.aborted = true
      this.emit("aborted")
    }
    this.destroy()
  }

  override _read(): void {
    this.#connection.resume(this.#stream)
  }

  override _write(chunk: Uint8Array, _: BufferEncoding, written: (error?: Error) => void): void {
    if (this.#hasNoBody || this.#stream.isClosed || this.#connection.data(this.#stream, chunk)) return written()
    this.#written = written
  }

  override _final(done: (error?: Error) => void): void {
    if (this.#waitsForTrailers) this.emit("wantTrailers")
    this.#connection.end(this.#stream)
    if (this.#stream.isLocalEnded || this.#stream.isClosed) return done()
    this.#sent = done
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const code = error === null ? ErrorCode.CANCEL : ErrorCode.INTERNAL_ERROR
    this.#connection.reset(this.#stream, code)
    done(error)
  }
}

interface ResponseOptions {
  readonly sendDate?: boolean | undefined
  readonly waitForTrailers?: boolean | undefined
}

/** A field of several values is sent several times. */
const fieldsOf = (headers: OutgoingHttpHeaders): ReadonlyArray<string> => {
  const fields: Array<string> = []
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) {
      // Pseudo-headers come first.
      if (name.startsWith(":")) fields.unshift(name, String(one))
      else fields.push(name.toLowerCase(), String(one))
    }
  }
  return fields
}
