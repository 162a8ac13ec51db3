/**
 * Client connection to an HTTP/2 server (RFC 9113), with many requests at a time. node:http2 costs more per request
 * than a bare server, so a load would measure itself. The connection handles flow control, settings, limits and GOAWAY;
 * handlers interpret the replies.
 */
import type { Socket } from "node:net"
import * as Address from "../target/Address.ts"
import {
  cancel,
  defaults,
  errorName,
  Flag,
  goaway,
  headLength,
  maxWindow,
  refusedStream,
  Setting,
  Type,
} from "./Frame.ts"
import * as Frame from "./Frame.ts"
import { FrameReader } from "./FrameReader.ts"
import { type Headers, HeaderReader } from "./HeaderReader.ts"
import { type HeaderFields, HeaderWriter } from "./HeaderWriter.ts"
import { Outbox } from "./Outbox.ts"

/** Callbacks of one request. `last` marks the end of the response. */
export interface Http2StreamHandler {
  readonly onHeaders: (headers: Headers, last: boolean) => void
  /** Part of the body. The buffer is overwritten later, so the handler must copy bytes that it keeps. */
  readonly onData: (part: Buffer, last: boolean) => void
  /** Reset, or lost with its connection; called instead of a `last`. `unseen`: the server has not begun with it. */
  readonly onAbort: (reason: string, unseen: boolean) => void
}

/** The reason of a request that the server has refused, and has not begun. */
export const refused = `the server reset the stream: ${errorName(refusedStream)}`

/** Bytes that a server may send before it hears that they were taken: so many that it never waits. */
const ownWindow = 2 ** 30

/** Maximum size of a header block with continuations, in bytes; protects against attacks. */
const maxHeaderBlock = 65_536

const preface = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Frame.settings([
    [Setting.ENABLE_PUSH, 0],
    [Setting.INITIAL_WINDOW_SIZE, ownWindow],
  ]),
  Frame.windowUpdate(0, ownWindow - defaults.window),
])

export class Http2Stream {
  readonly handler: Http2StreamHandler
  /** Header fields, if they differ from the connection's default. */
  readonly fields: HeaderFields | undefined
  /** Header fields behind those. */
  readonly added: HeaderFields | undefined
  isCancelled = false
  /** 0 until it begins. */
  id = 0
  /** Bytes that the server is ready to take. */
  window = 0
  /** Parts that wait for flow control. `sent` counts the bytes already sent of the first one. */
  readonly unsent: Array<Buffer> = []
  sent = 0
  /** Whether the request ends after `unsent`. */
  ended = false
  /** Bytes received since the last WINDOW_UPDATE. */
  received = 0

  constructor(handler: Http2StreamHandler, fields: HeaderFields | undefined, added: HeaderFields | undefined) {
    this.handler = handler
    this.fields = fields
    this.added = added
  }
}

export class Http2Connection {
  readonly #socket: Socket
  readonly #outbox: Outbox
  readonly #frames = new FrameReader({
    onData: (stream, part, counted, last) => this.#onData(stream, part, counted, last),
    onFrame: (type, flags, stream, payload) => this.#onFrame(type, flags, stream, payload),
  })
  readonly #reader = new HeaderReader()
  readonly #writer: HeaderWriter
  readonly #streams = new Map<number, Http2Stream>()
  /** Streams that wait for the server's stream limit. */
  readonly #waiting: Array<Http2Stream> = []
  /** Streams with unsent data that wait for flow control. */
  readonly #blocked = new Set<Http2Stream>()
  readonly #opened: PromiseWithResolvers<void>
  #nextId = 1
  #window: number = defaults.window
  #received = 0
  /** The server's settings. */
  #streamWindow: number = defaults.window
  #frameSize: number = defaults.frameSize
  #maxStreams = Infinity
  /** Header block that awaits CONTINUATION frames. */
  #block: { readonly stream: number; readonly last: boolean; readonly parts: Array<Buffer> } | undefined
  /** Reason why no further request can begin. */
  #retired: string | undefined
  #lost = false
  #reading = false
  #flushing = false

  private constructor(socket: Socket, fields: HeaderFields, opened: PromiseWithResolvers<void>) {
    this.#socket = socket
    this.#outbox = new Outbox(socket)
    this.#writer = new HeaderWriter(fields)
    this.#opened = opened
    socket.on("data", (chunk: Buffer) => this.#read(chunk))
    socket.on("error", (error) => this.#lose(`the connection was lost: ${error.message}`))
    socket.on("end", () => this.#lose("the server closed the connection"))
    socket.on("close", () => this.#lose("the server closed the connection"))
    this.#outbox.add(preface)
    this.#flushSoon()
  }

  /**
   * Opens a connection. Resolves after the server's settings arrive, which apply to every request. `fields` are the
   * default headers of requests.
   * @throws Error if the server is unreachable or does not support HTTP/2
   */
  static async open(address: Address.Address, fields: HeaderFields): Promise<Http2Connection> {
    const socket = await Address.connect(address, "h2")
    const opened = Promise.withResolvers<void>()
    const connection = new Http2Connection(socket, fields, opened)
    const timer = setTimeout(() => connection.#lose("it sent no settings within 10 s"), 10_000)
    try {
      await opened.promise
    } catch (error) {
      throw new Error(`${Address.print(address)} does not speak HTTP/2: ${Address.reason(error)}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
    return connection
  }

  /** Whether another request may be sent; false after a GOAWAY. */
  get accepts(): boolean {
    return this.#retired === undefined
  }

  /** Begins a request, now or when the server's limit allows it. `ended`: the body is complete, or there is none. */
  request(
    handler: Http2StreamHandler,
    body: ReadonlyArray<Buffer>,
    ended: boolean,
    fields?: HeaderFields,
    added?: HeaderFields,
  ): Http2Stream {
    const stream = new Http2Stream(handler, fields, added)
    stream.unsent.push(...body)
    stream.ended = ended
    if (this.#retired !== undefined) handler.onAbort(this.#retired, true)
    else if (this.#streams.size < this.#maxStreams) this.#begin(stream)
    else this.#waiting.push(stream)
    return stream
  }

  /** Sends more of a request's body; nothing where the stream is over. */
  write(stream: Http2Stream, parts: ReadonlyArray<Buffer>, ended: boolean): void {
    stream.unsent.push(...parts)
    stream.ended = ended
    if (this.#streams.has(stream.id) && !this.#blocked.has(stream)) this.#send(stream)
  }

  /** Resets a stream, whose handler is not called any more. A stream that has not begun is not sent. */
  cancel(stream: Http2Stream): void {
    stream.isCancelled = true
    if (!this.#streams.delete(stream.id)) return
    this.#blocked.delete(stream)
    this.#outbox.add(Frame.reset(stream.id, cancel))
    this.#beginWaiting()
    this.#flushSoon()
  }

  /** Ends all streams without calling their handlers. */
  close(): void {
    this.#retired ??= "the connection is closed"
    this.#lost = true
    this.#streams.clear()
    this.#waiting.length = 0
    if (this.#socket.destroyed) return
    this.#outbox.add(goaway())
    this.#outbox.flush()
    this.#socket.end()
    // Destroys the socket if the server does not close its side in time.
    this.#socket.once("end", () => this.#socket.destroy())
    setTimeout(() => this.#socket.destroy(), 1000).unref()
  }

  #begin(stream: Http2Stream): void {
    stream.id = this.#nextId
    this.#nextId += 2
    if (this.#nextId > maxWindow) this.#retired = "the connection has no stream ids left"
    stream.window = this.#streamWindow
    this.#streams.set(stream.id, stream)
    const block = this.#writer.block(stream.fields, stream.added)
    const bodiless = stream.ended && stream.unsent.length === 0
    for (let start = 0; start < block.length; start += this.#frameSize) {
      const part = block.subarray(start, start + this.#frameSize)
      const flags = start + part.length === block.length ? Flag.END_HEADERS : 0
      if (start > 0) this.#frame(Type.CONTINUATION, flags, stream.id, part)
      else this.#frame(Type.HEADERS, flags | (bodiless ? Flag.END_STREAM : 0), stream.id, part)
    }
    this.#send(stream)
  }

  #send(stream: Http2Stream): void {
    const { unsent } = stream
    for (;;) {
      const part = unsent[0]
      if (part === undefined) break
      const left = part.length - stream.sent
      const length = Math.min(left, stream.window, this.#window, this.#frameSize)
      if (length <= 0 && left > 0) {
        this.#blocked.add(stream)
        break
      }
      const whole = length === left
      const flags = whole && stream.ended && unsent.length === 1 ? Flag.END_STREAM : 0
      this.#frame(Type.DATA, flags, stream.id, part.subarray(stream.sent, stream.sent + length))
      stream.window -= length
      this.#window -= length
      stream.sent += length
      if (!whole) continue
      unsent.shift()
      stream.sent = 0
    }
    this.#flushSoon()
  }

  #frame(type: number, flags: number, stream: number, payload: Buffer): void {
    const { slab, offset } = this.#outbox.reserve(headLength)
    Frame.writeHead(slab, offset, payload.length, type, flags, stream)
    this.#outbox.add(payload)
  }

  #flushSoon(): void {
    if (this.#reading || this.#flushing) return
    this.#flushing = true
    queueMicrotask(() => {
      this.#flushing = false
      this.#outbox.flush()
    })
  }

  #read(chunk: Buffer): void {
    this.#reading = true
    try {
      this.#frames.read(chunk)
    } catch (error) {
      this.#lose(`the server violated the protocol: ${Address.reason(error)}`)
    }
    this.#reading = false
    // Sends everything that the frames of one read caused in one write.
    if (!this.#lost) this.#outbox.flush()
  }

  #onData(id: number, part: Buffer, counted: number, last: boolean): void {
    if (this.#block !== undefined) throw new Error("a frame interrupts a header block")
    this.#received += counted
    if (this.#received >= ownWindow / 2) {
      this.#outbox.add(Frame.windowUpdate(0, this.#received))
      this.#received = 0
    }
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    stream.received += counted
    if (stream.received >= ownWindow / 2 && !last) {
      this.#outbox.add(Frame.windowUpdate(id, stream.received))
      stream.received = 0
    }
    if (last) this.#end(stream)
    stream.handler.onData(part, last)
  }

  #onFrame(type: number, flags: number, stream: number, payload: Buffer): void {
    if (this.#lost) return
    if (this.#block !== undefined && (type !== Type.CONTINUATION || stream !== this.#block.stream)) {
      throw new Error("a frame interrupts a header block")
    }
    switch (type) {
      case Type.HEADERS:
        this.#block = { stream, last: (flags & Flag.END_STREAM) !== 0, parts: [payload] }
        return this.#onBlock(flags)
      case Type.CONTINUATION:
        if (this.#block === undefined) throw new Error("CONTINUATION without a header block")
        // A view would not outlive this read.
        this.#block.parts.push(Buffer.from(payload))
        return this.#onBlock(flags)
      case Type.RST_STREAM: {
        const open = this.#streams.get(stream)
        if (open === undefined) return
        const code = number(payload)
        this.#end(open)
        return open.handler.onAbort(`the server reset the stream: ${errorName(code)}`, false)
      }
      case Type.SETTINGS:
        return (flags & Flag.ACK) === 0 ? this.#onServerSettings(payload) : undefined
      case Type.PING:
        if ((flags & Flag.ACK) === 0) this.#frame(Type.PING, Flag.ACK, 0, payload)
        return
      case Type.GOAWAY:
        return this.#onGoaway(number(payload) & 0x7fff_ffff, number(payload, 4), payload.toString("latin1", 8))
      case Type.WINDOW_UPDATE:
        return this.#onWindowUpdate(stream, number(payload) & 0x7fff_ffff)
      case Type.PUSH_PROMISE:
        throw new Error("PUSH_PROMISE is not allowed")
      default:
        // PRIORITY, and what extensions add, may be ignored (RFC 9113, 5.5).
        return
    }
  }

  #onBlock(flags: number): void {
    const block = this.#block
    if (block === undefined) return
    const { stream: id, last, parts } = block
    if (parts.reduce((sum, part) => sum + part.length, 0) > maxHeaderBlock) {
      throw new Error(`a header block has more than ${maxHeaderBlock} bytes`)
    }
    if ((flags & Flag.END_HEADERS) === 0) {
      parts[0] = Buffer.from(parts[0] ?? [])
      return
    }
    this.#block = undefined
    const [first = Buffer.alloc(0)] = parts
    // Decoded for closed streams too, because the block may change the table.
    const headers = this.#reader.read(parts.length === 1 ? first : Buffer.concat(parts))
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    // 100 to 199 announce the reply and are not it.
    if (!last && headers.get(":status")?.startsWith("1")) return
    if (last) this.#end(stream)
    stream.handler.onHeaders(headers, last)
  }

  #onServerSettings(payload: Buffer): void {
    for (let offset = 0; offset + 6 <= payload.length; offset += 6) {
      const value = payload.readUInt32BE(offset + 2)
      switch (payload.readUInt16BE(offset)) {
        case Setting.HEADER_TABLE_SIZE:
          this.#writer.limit(value)
          break
        case Setting.MAX_CONCURRENT_STREAMS:
          this.#maxStreams = value
          break
        case Setting.MAX_FRAME_SIZE:
          this.#frameSize = value
          break
        case Setting.INITIAL_WINDOW_SIZE: {
          const change = value - this.#streamWindow
          this.#streamWindow = value
          for (const stream of this.#streams.values()) stream.window += change
          break
        }
      }
    }
    this.#frame(Type.SETTINGS, Flag.ACK, 0, Buffer.alloc(0))
    this.#unblock()
    this.#beginWaiting()
    this.#opened.resolve()
  }

  #onWindowUpdate(id: number, increment: number): void {
    if (id === 0) {
      this.#window += increment
      this.#unblock()
      return
    }
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    stream.window += increment
    if (this.#blocked.delete(stream)) this.#send(stream)
  }

  #unblock(): void {
    if (this.#blocked.size === 0) return
    const blocked = [...this.#blocked]
    this.#blocked.clear()
    for (const stream of blocked) this.#send(stream)
  }

  #beginWaiting(): void {
    while (this.#streams.size < this.#maxStreams && this.#retired === undefined) {
      const stream = this.#waiting.shift()
      if (stream === undefined) return
      if (!stream.isCancelled) this.#begin(stream)
    }
  }

  /** Ends a stream that the server has completed or reset. The rest of an incomplete request is not sent. */
  #end(stream: Http2Stream): void {
    this.#streams.delete(stream.id)
    this.#blocked.delete(stream)
    if (stream.unsent.length > 0 || !stream.ended) this.#outbox.add(Frame.reset(stream.id, cancel))
    if (this.#waiting.length > 0) this.#beginWaiting()
    else if (this.#retired !== undefined && this.#streams.size === 0) this.close()
  }

  #onGoaway(last: number, code: number, text: string): void {
    const reason = `the server ended the connection: ${errorName(code)}${text === "" ? "" : `, ${text}`}`
    this.#retired = reason
    // After a graceful end, requests that the server has not begun do not fail; they are sent elsewhere.
    for (const stream of this.#waiting.splice(0)) {
      if (!stream.isCancelled) stream.handler.onAbort(reason, code === Frame.noError)
    }
    for (const stream of this.#streams.values()) {
      if (stream.id <= last) continue
      this.#streams.delete(stream.id)
      this.#blocked.delete(stream)
      stream.handler.onAbort(reason, code === Frame.noError)
    }
    if (this.#streams.size === 0) this.close()
  }

  #lose(problem: string): void {
    if (this.#lost) return
    this.#lost = true
    const reason = this.#retired ?? problem
    this.#retired = reason
    this.#socket.destroy()
    this.#opened.reject(new Error(reason))
    const streams = [...this.#streams.values()]
    this.#streams.clear()
    for (const stream of streams) stream.handler.onAbort(reason, false)
    for (const stream of this.#waiting.splice(0)) if (!stream.isCancelled) stream.handler.onAbort(reason, false)
  }
}

/** Reads a number of four bytes that must be present. */
const number = (payload: Buffer, offset = 0): number => {
  if (payload.length < offset + 4) throw new Error("a frame is too short")
  return payload.readUInt32BE(offset)
}
