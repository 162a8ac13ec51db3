/**
 * One side of an HTTP/2 connection as a state machine (RFC 9113): bytes in, events and bytes out. It has no socket and
 * no timer, and time is passed in. SocketConnection.ts connects it to a socket. Priorities are ignored, and nothing is
 * pushed.
 *
 *   receive ─► FrameReader ─► here: settings, windows, states ─► events of the connection and its streams
 *   take    ◄─ Output ◄────── Sender ◄── head, data, end, message
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Flag, Setting, Type } from "../frame/Frame.ts"
import { FrameReader } from "../frame/FrameReader.ts"
import { Output } from "../frame/Output.ts"
import { HeaderBlock, type Kind } from "../header/HeaderBlock.ts"
import type { Headers } from "../header/Headers.ts"
import { type FieldList, HeaderDecoder, HeaderError } from "../hpack/HeaderDecoder.ts"
import type { HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import { ClosedStreams } from "./ClosedStreams.ts"
import { FloodBudget } from "./FloodBudget.ts"
import * as PeerSettings from "./PeerSettings.ts"
import { PendingBlock } from "./PendingBlock.ts"
import { HeldData } from "./HeldData.ts"
import { Sender } from "./Sender.ts"
import { noPayloads, Stream, type StreamHandler, type Trailers } from "./Stream.ts"
import { StreamTable } from "./StreamTable.ts"

export type { Headers, Stream, StreamHandler, Trailers }

export interface ConnectionOptions {
  readonly role: "client" | "server"
  /** Bytes that a peer may send ahead, per stream and in all. */
  readonly streamWindow: number
  readonly connectionWindow: number
  /** Streams that the peer may have open; 0 for a client, which accepts no pushes. */
  readonly maxConcurrentStreams: number
  /** Monotonic time in milliseconds. */
  readonly now: number
}

export interface ConnectionEvents {
  /** For a server: a request. Must set the handler of the stream. `isLast`: it has no body. */
  readonly onStream: (stream: Stream, headers: Headers, isLast: boolean) => void
  /** The first settings of the peer have arrived. */
  readonly onOpen: () => void
  /** The peer has sent a ping, which was acknowledged. */
  readonly onPing: () => void
  readonly onPingAcknowledged: () => void
  /** The peer accepts no streams any more. Those above `lastStream` have closed before, with REFUSED_STREAM. */
  readonly onGoaway: (code: number, reason: string) => void
  /** A stream has closed, after its own `onClose`. */
  readonly onStreamClosed: () => void
  /** Bytes that paused streams hold have changed by this many. */
  readonly onHeld: (bytes: number) => void
  /** There are bytes to write, added outside of `receive`. */
  readonly onOutput: () => void
  /** The connection is over: what is left to write should be written, and the socket closed. */
  readonly onFinished: (error: ConnectionError | undefined) => void
}

/** Size of the header fields of a message, as SETTINGS_MAX_HEADER_LIST_SIZE counts them. */
export const maxHeaderListSize = 65_536

/** Bytes that paused streams hold before the windows of the connection stay shut. */
export const maxHeldBytes = 16 * 1024 * 1024

/** Cost of an error in a FloodBudget. */
const errorCost = 10

const maxStreamId = 2 ** 31 - 1

export class Connection {
  readonly #isServer: boolean
  readonly #options: ConnectionOptions
  readonly #events: ConnectionEvents
  readonly #output = new Output()
  readonly #sender: Sender
  readonly #reader: FrameReader
  readonly #decoder = new HeaderDecoder(maxHeaderListSize, (fields, isTooLarge) => new HeaderBlock(fields, isTooLarge))
  readonly #streams = new StreamTable()
  readonly #closed = new ClosedStreams()
  readonly #flood: FloodBudget
  #now: number
  /** Bytes of the client's preface that have arrived. */
  #prefaceLength = 0
  #hasSettings = false
  #isReceiving = false
  #isDraining = false
  #isOver = false
  /** The last stream that the peer, and we, have opened. */
  #lastPeerStream = 0
  #nextStream = 1
  #peerStreamWindow: number = Frame.defaults.window
  /** Streams that the peer allows. */
  #maxStreams = Infinity
  /** Bytes that the peer may send, and those that were read since the last WINDOW_UPDATE. */
  #receiveWindow: number
  #unacknowledged = 0
  /** Bytes that paused streams hold, and those of them for which the connection's window stays shut. */
  #held = 0
  #deferred = 0
  /** The DATA frame that is being read: its stream, unless it is ignored. */
  #dataStream: Stream | undefined
  #dataEnds = false
  #dataLeft = 0
  #block: PendingBlock | undefined

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    this.#options = options
    this.#events = events
    this.#isServer = options.role === "server"
    this.#now = options.now
    this.#flood = new FloodBudget(options.now)
    this.#receiveWindow = options.connectionWindow
    this.#sender = new Sender(
      this.#output,
      (stream) => this.#endLocal(stream),
      () => this.#flood.useful(),
    )
    this.#reader = new FrameReader({
      onDataHead: (stream, flags, length) => this.#onDataHead(stream, flags, length),
      onDataPart: (part, isLast) => this.#onDataPart(part, isLast),
      onFrame: (type, flags, stream, payload) => this.#onFrame(type, flags, stream, payload),
    })
    this.#start()
  }

  /** Open streams. */
  get size(): number {
    return this.#streams.size
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether GOAWAY was sent or received. */
  get isDraining(): boolean {
    return this.#isDraining || this.#isOver
  }

  /** Whether another stream can be opened now. */
  get hasRoom(): boolean {
    return (
      this.#hasSettings && !this.isDraining && this.#streams.size < this.#maxStreams && this.#nextStream <= maxStreamId
    )
  }

  get hasStreamIds(): boolean {
    return this.#nextStream <= maxStreamId
  }

  /** Bytes that `take` would return. */
  get outputSize(): number {
    return this.#output.size
  }

  /** Takes bytes of the peer. Events are called before it returns, and their defects are thrown. */
  receive(chunk: Buffer, now: number): void {
    if (this.#isOver) return
    this.#now = now
    this.#isReceiving = true
    try {
      const start = this.#isServer ? this.#readPreface(chunk) : 0
      if (start < chunk.length) this.#reader.read(start === 0 ? chunk : chunk.subarray(start))
      if (!this.#isOver) this.#sender.pump()
    } catch (error) {
      if (error instanceof ConnectionError) return this.fail(error)
      this.fail(new ConnectionError(ErrorCode.INTERNAL_ERROR, "internal error"))
      throw error
    } finally {
      this.#isReceiving = false
    }
  }

  /** Returns the bytes to write, in order. */
  take(): ReadonlyArray<Buffer> {
    return this.#output.take()
  }

  /** Whether further output has to wait for the peer to read. */
  setBlocked(isBlocked: boolean): void {
    this.#sender.isBlocked = isBlocked
    if (!isBlocked && !this.#isOver) this.#sender.pump()
  }

  /** Continues with data that did not fit into the output. */
  pump(): void {
    if (!this.#isOver) this.#sender.pump()
  }

  /** For a client: opens a stream. There must be room. */
  open(handler: StreamHandler, template: HeaderTemplate, fields: FieldList, isLast: boolean): Stream {
    const stream = new Stream(this.#nextStream, this.#peerStreamWindow, this.#options.streamWindow)
    this.#nextStream += 2
    stream.handler = handler
    this.#streams.add(stream)
    this.#sender.head(stream, template, fields, isLast)
    this.#changed()
    return stream
  }

  /** Sends a head; with a status 1xx, another one follows. */
  head(stream: Stream, template: HeaderTemplate | undefined, fields: FieldList, isLast: boolean): void {
    if (stream.isClosed || stream.isLocalEnded) return
    this.#sender.head(stream, template, fields, isLast)
    this.#changed()
  }

  /** Sends a part of the body. Returns false if the next one should wait for `onDrain`. */
  data(stream: Stream, bytes: Uint8Array): boolean {
    if (stream.isClosed || stream.isEnding || stream.isLocalEnded) return true
    const hasRoom = this.#sender.data(stream, bytes)
    this.#changed()
    return hasRoom
  }

  /** Ends a message behind its data. */
  end(stream: Stream, trailers?: Trailers): void {
    if (stream.isClosed || stream.isEnding || stream.isLocalEnded) return
    this.#sender.end(stream, trailers)
    this.#changed()
  }

  /** Sends a whole response. */
  message(stream: Stream, head: HeaderTemplate, body: Uint8Array, trailers: HeaderTemplate): void {
    if (stream.isClosed || stream.isEnding || stream.isLocalEnded) return
    this.#sender.message(stream, head, body, trailers)
    this.#changed()
  }

  /** Ends a stream on both sides. */
  reset(stream: Stream, code: number): void {
    if (stream.isClosed) return
    this.#output.add(Frame.reset(stream.id, code))
    this.#close(stream, code, true)
    this.#changed()
  }

  /** Holds the data of a stream back; its window fills, and the peer waits. */
  pause(stream: Stream): void {
    stream.isPaused = true
  }

  /** Passes on what was held back. */
  resume(stream: Stream): void {
    if (!stream.isPaused) return
    stream.isPaused = false
    while (!stream.isPaused && !stream.isClosed) {
      const part = stream.held?.shift()
      if (part === undefined) break
      this.#release(part.length)
      this.#creditStream(stream, part.length)
      stream.handler?.onData(part)
    }
    if (stream.isPaused || stream.isClosed || !stream.isEndHeld) return
    stream.isEndHeld = false
    this.#endRemote(stream, stream.heldTrailers)
  }

  ping(): void {
    if (this.#isOver) return
    this.#output.frame(Type.PING, 0, 0, ourPing)
    this.#changed()
  }

  /** Says that `drain` will follow. Streams that cross it are accepted. */
  announce(reason: string): void {
    if (this.#isOver || this.#isDraining) return
    this.#output.add(Frame.goaway(maxStreamId, ErrorCode.NO_ERROR, reason))
    this.#changed()
  }

  /** Accepts no further streams, and finishes once those that are open have closed. */
  drain(reason: string): void {
    if (this.#isOver || this.#isDraining) return
    this.#isDraining = true
    this.#output.add(Frame.goaway(this.#lastPeerStream, ErrorCode.NO_ERROR, reason))
    if (this.#streams.size === 0) this.#finish(undefined)
    this.#changed()
  }

  /** Ends the connection and its streams for an error. */
  fail(error: ConnectionError): void {
    if (this.#isOver) return
    this.#output.add(Frame.goaway(this.#lastPeerStream, error.code, error.message.slice(0, maxReason)))
    this.#finish(error)
  }

  /** The socket is gone. */
  lost(): void {
    if (!this.#isOver) this.#finish(undefined)
  }

  #finish(error: ConnectionError | undefined): void {
    this.#isOver = true
    this.#reader.stop()
    this.#block = undefined
    for (const stream of this.#streams.all()) this.#close(stream, error?.code ?? ErrorCode.CANCEL, false)
    this.#events.onFinished(error)
  }

  #start(): void {
    const { streamWindow, connectionWindow, maxConcurrentStreams } = this.#options
    if (!this.#isServer) this.#output.add(Frame.preface)
    this.#output.add(
      Frame.settings([
        this.#isServer ? [Setting.MAX_CONCURRENT_STREAMS, maxConcurrentStreams] : [Setting.ENABLE_PUSH, 0],
        [Setting.INITIAL_WINDOW_SIZE, streamWindow],
        [Setting.MAX_HEADER_LIST_SIZE, maxHeaderListSize],
      ]),
    )
    if (connectionWindow > Frame.defaults.window) {
      this.#output.add(Frame.windowUpdate(0, connectionWindow - Frame.defaults.window))
    }
  }

  #changed(): void {
    if (!this.#isReceiving) this.#events.onOutput()
  }

  /** Returns how many bytes of the chunk belong to the preface. */
  #readPreface(chunk: Buffer): number {
    const start = this.#prefaceLength
    if (start === Frame.preface.length) return 0
    const length = Math.min(chunk.length, Frame.preface.length - start)
    if (chunk.compare(Frame.preface, start, start + length, 0, length) !== 0) {
      throw protocolError("the connection does not begin with the preface of HTTP/2")
    }
    this.#prefaceLength += length
    return length
  }

  #onDataHead(id: number, flags: number, length: number): void {
    this.#checkFirst(Type.DATA)
    this.#checkBlock()
    this.#receiveWindow -= length
    if (this.#receiveWindow < 0) throw flowError("the window of the connection is exceeded")
    const endsStream = (flags & Flag.END_STREAM) !== 0
    if (length > 0 || endsStream) this.#flood.useful()
    else this.#spend(1)
    this.#dataLeft = length
    this.#dataEnds = endsStream
    const stream = this.#existing(id, Type.DATA)
    this.#dataStream = stream
    if (stream === undefined) return
    stream.receiveWindow -= length
    if (stream.isRemoteEnded) this.#streamError(stream, ErrorCode.STREAM_CLOSED)
    else if (stream.receiveWindow < 0) this.#streamError(stream, ErrorCode.FLOW_CONTROL_ERROR)
    else if (!this.#isServer && !stream.hasReceivedHead) this.#streamError(stream, ErrorCode.PROTOCOL_ERROR)
  }

  #onDataPart(part: Buffer, isLast: boolean): void {
    const { length } = part
    const stream = this.#dataStream
    // The rest of the frame is padding.
    const padding = isLast ? this.#dataLeft - length : 0
    this.#dataLeft -= length
    if (stream === undefined || stream.isClosed) return this.#creditConnection(length + padding)
    if (padding > 0) {
      this.#creditConnection(padding)
      this.#creditStream(stream, padding)
    }
    if (stream.expected >= 0) {
      stream.expected -= length
      const isWrong = stream.expected < 0 || (isLast && this.#dataEnds && stream.expected > 0)
      if (isWrong) {
        this.#creditConnection(length)
        return this.#streamError(stream, ErrorCode.PROTOCOL_ERROR)
      }
    }
    // Before its reader has the last bytes: a response to them ends the stream.
    const ends = isLast && this.#dataEnds
    if (ends) stream.isRemoteEnded = true
    if (length > 0) {
      if (stream.isPaused) this.#hold(stream, part)
      else {
        this.#creditConnection(length)
        this.#creditStream(stream, length)
        stream.handler?.onData(part)
      }
    }
    if (ends) this.#endRemote(stream, undefined)
  }

  #onFrame(type: number, flags: number, id: number, payload: Buffer): void {
    this.#checkFirst(type)
    if (type !== Type.CONTINUATION) this.#checkBlock()
    switch (type) {
      case Type.HEADERS:
        return this.#onHeaders(flags, id, payload)
      case Type.CONTINUATION:
        return this.#onContinuation(flags, id, payload)
      case Type.PRIORITY:
        if (payload.length !== 5) throw sizeError("PRIORITY")
        if (id === 0 || Frame.readUint31(payload, 0) === id) throw protocolError("PRIORITY of a wrong stream")
        return this.#spend(1)
      case Type.RST_STREAM:
        return this.#onReset(id, payload)
      case Type.SETTINGS:
        return this.#onSettings(flags, id, payload)
      case Type.PUSH_PROMISE:
        throw protocolError("PUSH_PROMISE is not allowed")
      case Type.PING:
        return this.#onPing(flags, id, payload)
      case Type.GOAWAY:
        return this.#onGoaway(id, payload)
      case Type.WINDOW_UPDATE:
        return this.#onWindowUpdate(id, payload)
      default:
        // Frames of extensions are ignored (RFC 9113, 5.5).
        return this.#spend(1)
    }
  }

  #onHeaders(flags: number, id: number, payload: Buffer): void {
    if (id === 0) throw protocolError("HEADERS without a stream")
    const block = new PendingBlock(id, flags, payload)
    if (block.isComplete) return this.#onBlock(block)
    this.#block = block
    block.own()
  }

  #onContinuation(flags: number, id: number, payload: Buffer): void {
    const block = this.#block
    if (block === undefined || block.stream !== id) throw protocolError("CONTINUATION without its header block")
    block.add(flags, payload)
    if (!block.isComplete) return
    this.#block = undefined
    this.#onBlock(block)
  }

  #onBlock(block: PendingBlock): void {
    let fields: HeaderBlock
    try {
      // Also for streams that are closed, because the block may change the table.
      fields = this.#decoder.decode(block.bytes)
    } catch (error) {
      if (error instanceof HeaderError) throw new ConnectionError(ErrorCode.COMPRESSION_ERROR, error.message)
      throw error
    }
    const { stream: id, isLast } = block
    if (block.dependency === id) throw protocolError("a stream depends on itself")
    const open = this.#streams.get(id)
    if (open === undefined && this.#isServer && id > this.#lastPeerStream) return this.#onRequest(id, isLast, fields)
    const stream = open ?? this.#existing(id, Type.HEADERS)
    if (stream === undefined) return
    this.#flood.useful()
    if (stream.isRemoteEnded) return this.#streamError(stream, ErrorCode.STREAM_CLOSED)
    if (!this.#isServer && !stream.hasReceivedHead) return this.#onResponse(stream, isLast, fields)
    if (!isLast || !this.#isValid(stream, fields, "trailers") || stream.expected > 0) {
      if (!stream.isClosed) this.#streamError(stream, ErrorCode.PROTOCOL_ERROR)
      return
    }
    stream.isRemoteEnded = true
    this.#endRemote(stream, fields)
  }

  #onRequest(id: number, isLast: boolean, fields: HeaderBlock): void {
    if ((id & 1) === 0) throw protocolError("a client has opened a stream with an even id")
    // Sent before it saw our GOAWAY, which says that it is not processed.
    if (this.#isDraining) return this.#spend(1)
    this.#lastPeerStream = id
    if (this.#streams.size >= this.#options.maxConcurrentStreams) {
      this.#spend(1)
      return this.#refuse(id, ErrorCode.REFUSED_STREAM)
    }
    if (fields.isTooLarge || fields.problem("request") !== "") {
      this.#spend(errorCost)
      return this.#refuse(id, fields.isTooLarge ? ErrorCode.ENHANCE_YOUR_CALM : ErrorCode.PROTOCOL_ERROR)
    }
    const { contentLength } = fields
    if (isLast && contentLength !== undefined && contentLength > 0) {
      this.#spend(errorCost)
      return this.#refuse(id, ErrorCode.PROTOCOL_ERROR)
    }
    this.#flood.useful()
    const stream = new Stream(id, this.#peerStreamWindow, this.#options.streamWindow)
    stream.hasReceivedHead = true
    stream.isRemoteEnded = isLast
    if (contentLength !== undefined && !isLast) stream.expected = contentLength
    this.#streams.add(stream)
    this.#events.onStream(stream, fields.headers, isLast)
    if (isLast && !stream.isClosed) this.#endRemote(stream, undefined)
  }

  #onResponse(stream: Stream, isLast: boolean, fields: HeaderBlock): void {
    if (!this.#isValid(stream, fields, "response")) return
    if (fields.status < 200) {
      if (isLast) return this.#streamError(stream, ErrorCode.PROTOCOL_ERROR)
      return this.#spend(1)
    }
    stream.hasReceivedHead = true
    if (isLast) stream.isRemoteEnded = true
    else stream.expected = fields.contentLength ?? -1
    stream.handler?.onHeaders(fields.headers, isLast)
    if (isLast) this.#endRemote(stream, undefined)
  }

  /** Resets the stream if the fields are not valid. */
  #isValid(stream: Stream, fields: HeaderBlock, kind: Kind): boolean {
    if (fields.isTooLarge) this.#streamError(stream, ErrorCode.ENHANCE_YOUR_CALM)
    else if (fields.problem(kind) === "") return true
    else this.#streamError(stream, ErrorCode.PROTOCOL_ERROR)
    return false
  }

  #onReset(id: number, payload: Buffer): void {
    if (payload.length !== 4) throw sizeError("RST_STREAM")
    this.#spend(1)
    const stream = this.#existing(id, Type.RST_STREAM)
    if (stream !== undefined) this.#close(stream, Frame.readUint32(payload, 0), false)
  }

  #onSettings(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw protocolError("SETTINGS of a stream")
    if ((flags & Flag.ACK) !== 0) {
      if (payload.length > 0) throw sizeError("the acknowledgement of SETTINGS")
      return this.#spend(1)
    }
    const { initialWindowSize, maxFrameSize, headerTableSize, maxConcurrentStreams } = PeerSettings.read(
      payload,
      this.#isServer,
    )
    this.#spend(1 + (payload.length >>> 6))
    if (initialWindowSize !== undefined) this.#setStreamWindow(initialWindowSize)
    if (maxFrameSize !== undefined) this.#sender.maxFrameSize = maxFrameSize
    if (headerTableSize !== undefined) this.#sender.encoder.limit(headerTableSize)
    if (maxConcurrentStreams !== undefined) this.#maxStreams = maxConcurrentStreams
    this.#output.frame(Type.SETTINGS, Flag.ACK, 0, noBytes)
    if (this.#hasSettings) return
    this.#hasSettings = true
    this.#events.onOpen()
  }

  #setStreamWindow(size: number): void {
    const change = size - this.#peerStreamWindow
    this.#peerStreamWindow = size
    if (change === 0 || this.#streams.size === 0) return
    this.#spend(this.#streams.size >>> 4)
    for (const stream of this.#streams.all()) {
      stream.sendWindow += change
      if (stream.sendWindow > Frame.maxWindow) throw flowError("the window of a stream is larger than 2^31 - 1")
      this.#sender.widened(stream)
    }
  }

  #onPing(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw protocolError("PING of a stream")
    if (payload.length !== 8) throw sizeError("PING")
    this.#spend(1)
    if ((flags & Flag.ACK) !== 0) {
      if (payload.equals(ourPing)) this.#events.onPingAcknowledged()
      return
    }
    this.#output.frame(Type.PING, Flag.ACK, 0, payload)
    this.#events.onPing()
  }

  #onGoaway(id: number, payload: Buffer): void {
    if (id !== 0) throw protocolError("GOAWAY of a stream")
    if (payload.length < 8) throw sizeError("GOAWAY")
    this.#spend(1)
    if (!this.#isServer) {
      const lastStream = Frame.readUint31(payload, 0)
      this.#isDraining = true
      for (const stream of this.#streams.all()) {
        if (stream.id > lastStream) this.#close(stream, ErrorCode.REFUSED_STREAM, false)
      }
    }
    this.#events.onGoaway(Frame.readUint32(payload, 4), payload.toString("latin1", 8))
    if (!this.#isServer && this.#streams.size === 0 && !this.#isOver) this.#finish(undefined)
  }

  #onWindowUpdate(id: number, payload: Buffer): void {
    if (payload.length !== 4) throw sizeError("WINDOW_UPDATE")
    this.#spend(1)
    const increment = Frame.readUint31(payload, 0)
    if (id === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE has an increment of 0")
      this.#sender.window += increment
      if (this.#sender.window > Frame.maxWindow) throw flowError("the window is larger than 2^31 - 1")
      return
    }
    const stream = this.#existing(id, Type.WINDOW_UPDATE)
    if (stream === undefined) return
    if (increment === 0) return this.#streamError(stream, ErrorCode.PROTOCOL_ERROR)
    stream.sendWindow += increment
    if (stream.sendWindow > Frame.maxWindow) return this.#streamError(stream, ErrorCode.FLOW_CONTROL_ERROR)
    this.#sender.widened(stream)
  }

  /** The open stream of a frame; undefined for a closed one, whose frame is ignored or refused. */
  #existing(id: number, type: number): Stream | undefined {
    const stream = this.#streams.get(id)
    if (stream !== undefined) return stream
    const isOfClient = (id & 1) === 1
    const last = this.#isServer ? this.#lastPeerStream : this.#nextStream - 2
    if (!isOfClient || id > last) {
      // After our GOAWAY, streams above the last one are ignored.
      if (isOfClient && this.#isServer && this.#isDraining) return void this.#spend(1)
      throw protocolError("a frame of a stream that was not opened")
    }
    if (type === Type.RST_STREAM || type === Type.WINDOW_UPDATE) return undefined
    const state = this.#closed.get(id)
    if (type === Type.HEADERS) {
      if (state === "reset" || !this.#isServer) return void this.#spend(1)
      throw new ConnectionError(
        state === undefined ? ErrorCode.PROTOCOL_ERROR : ErrorCode.STREAM_CLOSED,
        "a header block of a closed stream",
      )
    }
    this.#spend(1)
    if (state !== "reset") this.#refuse(id, ErrorCode.STREAM_CLOSED)
    return undefined
  }

  #checkFirst(type: number): void {
    if (!this.#hasSettings && type !== Type.SETTINGS) throw protocolError("the first frame is not SETTINGS")
  }

  #checkBlock(): void {
    if (this.#block !== undefined) throw protocolError("a frame interrupts a header block")
  }

  /** @throws ConnectionError if the peer causes too much work */
  #spend(frames: number): void {
    if (this.#flood.spend(frames, this.#now)) return
    throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, "too many frames without data")
  }

  #refuse(id: number, code: number): void {
    this.#closed.add(id, true)
    this.#output.add(Frame.reset(id, code))
  }

  #streamError(stream: Stream, code: number): void {
    this.#spend(errorCost)
    this.#output.add(Frame.reset(stream.id, code))
    this.#close(stream, code, true)
  }

  #endRemote(stream: Stream, trailers: HeaderBlock | undefined): void {
    if (stream.isClosed) return
    if (stream.isPaused) {
      stream.heldTrailers = trailers
      stream.isEndHeld = true
    } else {
      if (trailers !== undefined) stream.handler?.onTrailers(trailers.headers)
      stream.handler?.onEnd()
    }
    this.#closeIfEnded(stream)
  }

  #endLocal(stream: Stream): void {
    stream.isLocalEnded = true
    this.#closeIfEnded(stream)
    stream.handler?.onSent()
  }

  /** A client still reads what is held back; a server that has responded does not. */
  #closeIfEnded(stream: Stream): void {
    if (!stream.isLocalEnded || !stream.isRemoteEnded || (stream.isEndHeld && !this.#isServer)) return
    this.#close(stream, ErrorCode.NO_ERROR, false)
  }

  #close(stream: Stream, code: number, isReset: boolean): void {
    if (stream.isClosed) return
    stream.isClosed = true
    this.#streams.delete(stream)
    this.#closed.add(stream.id, isReset)
    stream.queue = noPayloads
    stream.queued = 0
    if (stream.held !== undefined) this.#release(stream.held.length)
    stream.held = undefined
    const { handler } = stream
    stream.handler = undefined
    handler?.onClose(code)
    this.#events.onStreamClosed()
    if (this.#isDraining && this.#streams.size === 0 && !this.#isOver) this.#finish(undefined)
  }

  /** Keeps data that arrives while the reader has paused. */
  #hold(stream: Stream, part: Buffer): void {
    const { length } = part
    const held = (stream.held ??= new HeldData())
    held.add(part)
    this.#held += length
    if (this.#held > maxHeldBytes) this.#deferred += length
    else this.#creditConnection(length)
    this.#events.onHeld(length)
  }

  #release(bytes: number): void {
    if (bytes === 0) return
    this.#held -= bytes
    const deferred = Math.min(bytes, this.#deferred)
    this.#deferred -= deferred
    if (deferred > 0) {
      this.#creditConnection(deferred)
      this.#changed()
    }
    this.#events.onHeld(-bytes)
  }

  /** The bytes were read, so that the peer may send as many again. */
  #creditConnection(bytes: number): void {
    this.#unacknowledged += bytes
    if (this.#unacknowledged < this.#options.connectionWindow / 2 || this.#isOver) return
    this.#output.add(Frame.windowUpdate(0, this.#unacknowledged))
    this.#receiveWindow += this.#unacknowledged
    this.#unacknowledged = 0
    this.#changed()
  }

  #creditStream(stream: Stream, bytes: number): void {
    stream.unacknowledged += bytes
    if (stream.unacknowledged < this.#options.streamWindow / 2 || stream.isRemoteEnded || stream.isClosed) return
    this.#output.add(Frame.windowUpdate(stream.id, stream.unacknowledged))
    stream.receiveWindow += stream.unacknowledged
    stream.unacknowledged = 0
    this.#changed()
  }
}

const noBytes = Buffer.alloc(0)

/** Payload of our pings, by which their acknowledgements are known. */
const ourPing = Buffer.from("nereid\0\0", "latin1")

/** Longest reason of a GOAWAY. */
const maxReason = 256

const protocolError = (message: string) => new ConnectionError(ErrorCode.PROTOCOL_ERROR, message)

const flowError = (message: string) => new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, message)

const sizeError = (frame: string) => new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, `${frame} has a wrong length`)
