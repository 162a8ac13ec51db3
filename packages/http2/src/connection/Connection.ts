/**
 * One side of an HTTP/2 connection as a state machine (RFC 9113): bytes in, events and bytes out. It has no socket and
 * no timer, and time is passed in. SocketConnection.ts connects it to a socket. Priorities are ignored, and nothing is
 * pushed.
 *
 *   receive ─► Receiver ─┬─► DataFrames ─► ReceiveWindows ─┐
 *                        ├─► HeaderFrames ─────────────────┼─► Streams ─► events of the connection and its streams
 *                        └─► ControlFrames ────────────────┘
 *   take    ◄─ Output ◄─ Sender ◄─ Responses ◄── head, data, end, message
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Setting } from "../frame/Frame.ts"
import { Output } from "../frame/Output.ts"
import type { Headers } from "../header/Headers.ts"
import type { FieldList } from "../hpack/HeaderDecoder.ts"
import type { HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import { type ControlEvents, ControlFrames } from "./ControlFrames.ts"
import { DataFrames } from "./DataFrames.ts"
import { FloodBudget } from "./FloodBudget.ts"
import { HeaderFrames, maxHeaderListSize, type RequestEvents } from "./HeaderFrames.ts"
import type { Lifecycle } from "./Lifecycle.ts"
import { Receiver } from "./Receiver.ts"
import { ReceiveWindows, type WindowEvents, type WindowSizes } from "./ReceiveWindows.ts"
import { Responses } from "./Responses.ts"
import { Sender } from "./Sender.ts"
import { noFields, type Stream, type StreamHandler, type Trailers } from "./Stream.ts"
import { Streams } from "./Streams.ts"

export type { Headers, Stream, StreamHandler, Trailers }

export interface ConnectionOptions extends WindowSizes {
  readonly role: "client" | "server"
  /** Streams that the peer may have open; 0 for a client, which accepts no pushes. */
  readonly maxConcurrentStreams: number
}

export interface ConnectionEvents extends ControlEvents, RequestEvents, WindowEvents {
  /** The peer accepts no streams any more. Those above `lastStream` close next, with REFUSED_STREAM. */
  readonly onGoaway: (code: number, reason: string) => void
  /** A stream has closed, after its own `onClose`. */
  readonly onStreamClosed: () => void
  /** The connection is over: what is left to write should be written, and the socket closed. */
  readonly onFinished: (error: ConnectionError | undefined) => void
}

const maxStreamId = 2 ** 31 - 1

export class Connection implements Lifecycle {
  readonly #isServer: boolean
  readonly #options: ConnectionOptions
  readonly #events: ConnectionEvents
  readonly #output = new Output()
  readonly #flood: FloodBudget
  readonly #windows: ReceiveWindows
  readonly #streams: Streams
  readonly #sender: Sender
  readonly #responses: Responses
  readonly #control: ControlFrames
  readonly #receiver: Receiver
  #isReceiving = false
  #isOver = false
  #error: ConnectionError | undefined

  /** `now`: monotonic time in milliseconds. */
  constructor(options: ConnectionOptions, events: ConnectionEvents, now: number) {
    this.#options = options
    this.#events = events
    this.#isServer = options.role === "server"
    const output = this.#output
    const flood = (this.#flood = new FloodBudget(now))
    const windows = (this.#windows = new ReceiveWindows(options, output, events))
    const streams = (this.#streams = new Streams(this.#isServer, options.streamWindow, output, flood, windows, this))
    this.#sender = new Sender(output, streams, flood)
    this.#responses = new Responses(this.#sender)
    this.#control = new ControlFrames(streams, this.#sender, output, flood, events)
    this.#receiver = new Receiver(
      this.#isServer,
      new DataFrames(streams, windows, flood),
      new HeaderFrames(streams, flood, options.maxConcurrentStreams, events),
      this.#control,
      flood,
      this,
    )
    this.#start()
  }

  /** Open streams. */
  get size(): number {
    return this.#streams.size
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The error that has ended the connection, already when its streams close. */
  get error(): ConnectionError | undefined {
    return this.#error
  }

  /** Whether GOAWAY was sent or received. */
  get isDraining(): boolean {
    return this.#streams.isDraining || this.#isOver
  }

  /** Whether another stream can be opened now. */
  get hasRoom(): boolean {
    const { hasSettings, maxStreams } = this.#control
    return hasSettings && !this.isDraining && this.#streams.size < maxStreams && this.hasStreamIds
  }

  get hasStreamIds(): boolean {
    return this.#streams.nextId <= maxStreamId
  }

  /** Bytes that `take` would return. */
  get outputSize(): number {
    return this.#output.size
  }

  /**
   * A number of the header block or frame that the peer has begun and not completed; 0 without one. Data that is still
   * to come does not count: only the program knows how long a message may take.
   */
  get unfinished(): number {
    return this.#receiver.unfinished
  }

  /**
   * Takes bytes of the peer: all frames that begin before the offset `enough`. Returns the offset of those that it has
   * not taken, which must come next. Events are called before it returns, and their defects are thrown.
   */
  receive(chunk: Buffer, now: number, enough = chunk.length): number {
    if (this.#isOver) return chunk.length
    this.#flood.now = now
    this.#isReceiving = true
    try {
      const taken = this.#receiver.read(chunk, enough)
      this.#responses.send()
      if (!this.#isOver) this.#sender.pump()
      return taken
    } catch (error) {
      if (error instanceof ConnectionError) {
        this.fail(error)
        return chunk.length
      }
      this.fail(new ConnectionError(ErrorCode.INTERNAL_ERROR, "internal error"))
      throw error
    } finally {
      this.#isReceiving = false
    }
  }

  /** Whether the memory of chunks that were received since the last call may still be read. */
  takeKept(): boolean {
    return this.#receiver.takeKept()
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
  open(handler: StreamHandler, template: HeaderTemplate | undefined, fields: FieldList, isLast: boolean): Stream {
    const streams = this.#streams
    const stream = streams.open(streams.nextId)
    streams.nextId += 2
    stream.handler = handler
    this.#sender.head(stream, template, fields, isLast)
    this.#changed()
    return stream
  }

  /** Sends a head; with a status 1xx, another one follows. */
  head(stream: Stream, template: HeaderTemplate | undefined, fields: FieldList, isLast: boolean): void {
    if (stream.isClosed || stream.isEnding || stream.isLocalEnded) return
    if (isLast && this.#isReceiving) return this.#responses.add({ stream, template, fields, body: undefined })
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

  /** Sends a whole response. The bytes must not change any more. */
  message(stream: Stream, head: HeaderTemplate, body: Uint8Array, trailers: HeaderTemplate): void {
    if (stream.isClosed || stream.isEnding || stream.isLocalEnded) return
    if (this.#isReceiving) return this.#responses.add({ stream, template: head, fields: noFields, body, trailers })
    this.#sender.message(stream, head, body, trailers)
    this.#changed()
  }

  /** Ends a stream on both sides. */
  reset(stream: Stream, code: number): void {
    if (stream.isClosed) return
    this.#streams.reset(stream, code)
    this.#changed()
  }

  /** Holds the data of a stream back; its window fills, and the peer waits. */
  pause(stream: Stream): void {
    stream.isPaused = true
  }

  /** Passes on what was held back. */
  resume(stream: Stream): void {
    this.#streams.resume(stream)
  }

  ping(): void {
    if (this.#isOver) return
    this.#control.ping()
    this.#changed()
  }

  /** Sends a ping whose acknowledgement is another event: it says what was sent before. */
  probe(): void {
    if (this.#isOver) return
    this.#control.probe()
    this.#changed()
  }

  /** Says that `drain` will follow. Streams that cross it are accepted. */
  announce(reason: string): void {
    if (this.isDraining) return
    this.#output.add(Frame.goaway(maxStreamId, ErrorCode.NO_ERROR, reason))
    this.#changed()
  }

  /** Accepts no further streams, and finishes once those that are open have closed. */
  drain(reason: string): void {
    if (this.isDraining) return
    this.#streams.isDraining = true
    this.#output.add(Frame.goaway(this.#streams.lastOfPeer, ErrorCode.NO_ERROR, reason))
    this.#finishIfDrained()
    this.#changed()
  }

  /** Ends the connection and its streams for an error. */
  fail(error: ConnectionError): void {
    if (this.#isOver) return
    this.#responses.send()
    if (this.#isOver) return
    this.#output.add(Frame.goaway(this.#streams.lastOfPeer, error.code, error.message.slice(0, maxReason)))
    this.#finish(error)
  }

  /** The socket is gone. */
  lost(): void {
    if (!this.#isOver) this.#finish(undefined)
  }

  streamClosed(): void {
    this.#events.onStreamClosed()
    this.#finishIfDrained()
  }

  receivedGoaway(lastStream: number, code: number, reason: string): void {
    // The streams of a client belong to a server that leaves. A server goes on with its own.
    if (!this.#isServer) this.#streams.isDraining = true
    this.#events.onGoaway(code, reason)
    if (this.#isServer || this.#isOver) return
    for (const stream of this.#streams.all()) {
      if (stream.id > lastStream) this.#streams.close(stream, ErrorCode.REFUSED_STREAM)
    }
    this.#finishIfDrained()
  }

  #finish(error: ConnectionError | undefined): void {
    this.#isOver = true
    this.#error = error
    this.#receiver.stop()
    this.#windows.stop()
    for (const stream of this.#streams.all()) this.#streams.close(stream, error?.code ?? ErrorCode.CANCEL)
    this.#events.onFinished(error)
  }

  #finishIfDrained(): void {
    if (this.#streams.isDraining && this.#streams.size === 0 && !this.#isOver) this.#finish(undefined)
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
}

/** Longest reason of a GOAWAY. */
const maxReason = 256
