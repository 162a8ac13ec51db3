/**
 * The streams of a connection: which are open, and how each one ends (RFC 9113, 5.1). Frames of closed streams are
 * ignored or refused here.
 *
 *   open ─► open ──endLocal──► half closed ──endRemote──► closed
 *             └────────── reset, streamError, close ──────────┘
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Type } from "../frame/Frame.ts"
import type { Output } from "../frame/Output.ts"
import type { HeaderBlock } from "../header/HeaderBlock.ts"
import { ClosedStreams } from "./ClosedStreams.ts"
import { errorCost, type FloodBudget } from "./FloodBudget.ts"
import type { Lifecycle } from "./Lifecycle.ts"
import type { ReceiveWindows } from "./ReceiveWindows.ts"
import { noPayloads, Stream } from "./Stream.ts"
import { StreamTable } from "./StreamTable.ts"

export class Streams {
  readonly isServer: boolean
  /** The last stream that the peer has opened, and the next one that we open. */
  lastOfPeer = 0
  nextId = 1
  /** Whether no further stream may be opened: GOAWAY was sent, or received by a client. */
  isDraining = false
  /** Bytes that the peer takes ahead on a new stream. */
  peerWindow: number = Frame.defaults.window
  readonly #window: number
  readonly #output: Output
  readonly #flood: FloodBudget
  readonly #windows: ReceiveWindows
  readonly #lifecycle: Lifecycle
  readonly #open = new StreamTable()
  readonly #closed = new ClosedStreams()

  /** `window`: bytes that the peer may send ahead on a new stream. */
  constructor(
    isServer: boolean,
    window: number,
    output: Output,
    flood: FloodBudget,
    windows: ReceiveWindows,
    lifecycle: Lifecycle,
  ) {
    this.isServer = isServer
    this.#window = window
    this.#output = output
    this.#flood = flood
    this.#windows = windows
    this.#lifecycle = lifecycle
  }

  /** Open streams. */
  get size(): number {
    return this.#open.size
  }

  get(id: number): Stream | undefined {
    return this.#open.get(id)
  }

  /** All open streams, in no order. Streams may be opened and closed meanwhile. */
  all(): ReadonlyArray<Stream> {
    return this.#open.all()
  }

  open(id: number): Stream {
    const stream = new Stream(id, this.peerWindow, this.#window)
    this.#open.add(stream)
    return stream
  }

  /**
   * The open stream of a frame; undefined for a closed one, whose frame is ignored or refused.
   * @throws ConnectionError if the frame is not allowed
   */
  existing(id: number, type: number): Stream | undefined {
    const stream = this.#open.get(id)
    if (stream !== undefined) return stream
    const isOfClient = (id & 1) === 1
    const last = this.isServer ? this.lastOfPeer : this.nextId - 2
    if (!isOfClient || id > last) {
      // After our GOAWAY, streams above the last one are ignored.
      if (isOfClient && this.isServer && this.isDraining) return void this.#flood.spend(1)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "a frame of a stream that was not opened")
    }
    if (type === Type.RST_STREAM || type === Type.WINDOW_UPDATE) return undefined
    const state = this.#closed.get(id)
    if (type === Type.HEADERS) {
      if (state === "reset" || !this.isServer) return void this.#flood.spend(1)
      throw new ConnectionError(
        state === undefined ? ErrorCode.PROTOCOL_ERROR : ErrorCode.STREAM_CLOSED,
        "a header block of a closed stream",
      )
    }
    this.#flood.spend(1)
    if (state !== "reset") this.refuse(id, ErrorCode.STREAM_CLOSED)
    return undefined
  }

  /** Resets a stream that is not open. */
  refuse(id: number, code: number): void {
    this.#closed.add(id, true)
    this.#output.add(Frame.reset(id, code))
  }

  /** Resets an open stream. */
  reset(stream: Stream, code: number): void {
    this.#output.add(Frame.reset(stream.id, code))
    this.#close(stream, code, true)
  }

  /**
   * Resets an open stream for an error of the peer.
   * @throws ConnectionError if there were too many errors
   */
  streamError(stream: Stream, code: number): void {
    this.#flood.spend(errorCost)
    this.reset(stream, code)
  }

  /** The peer has sent everything. */
  endRemote(stream: Stream, trailers: HeaderBlock | undefined): void {
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

  /** We have sent everything. */
  endLocal(stream: Stream): void {
    stream.isLocalEnded = true
    this.#closeIfEnded(stream)
    stream.handler?.onSent()
  }

  /** Passes on what was held back, after a pause. */
  resume(stream: Stream): void {
    if (!stream.isPaused) return
    stream.isPaused = false
    this.#windows.readHeld(stream)
    if (stream.isPaused || stream.isClosed || !stream.isEndHeld) return
    stream.isEndHeld = false
    this.endRemote(stream, stream.heldTrailers)
  }

  /** Closes a stream without a frame. */
  close(stream: Stream, code: number): void {
    this.#close(stream, code, false)
  }

  /** A client still reads what is held back; a server that has responded does not. */
  #closeIfEnded(stream: Stream): void {
    if (!stream.isLocalEnded || !stream.isRemoteEnded || (stream.isEndHeld && !this.isServer)) return
    this.#close(stream, ErrorCode.NO_ERROR, false)
  }

  #close(stream: Stream, code: number, isReset: boolean): void {
    if (stream.isClosed) return
    stream.isClosed = true
    this.#open.delete(stream)
    this.#closed.add(stream.id, isReset)
    stream.queue = noPayloads
    stream.queued = 0
    this.#windows.dropHeld(stream)
    const { handler } = stream
    stream.handler = undefined
    handler?.onClose(code)
    this.#lifecycle.streamClosed()
  }
}
