/**
 * Flow control of received data (RFC 9113, 5.2): the windows of a connection and its streams, which open again as data
 * is read, and the data of streams whose readers have paused.
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import type { Output } from "../frame/Output.ts"
import { HeldData } from "./HeldData.ts"
import type { Stream } from "./Stream.ts"

/** Bytes that paused streams hold before the windows of the connection stay shut. */
export const maxHeldBytes = 16 * 1024 * 1024

export interface WindowSizes {
  /** Bytes that a peer may send ahead, per stream and in all. */
  readonly streamWindow: number
  readonly connectionWindow: number
}

export interface WindowEvents {
  /** Bytes that paused streams hold have changed by this many. */
  readonly onHeld: (bytes: number) => void
  /** There are bytes to write. Not always called for those that are added within `receive`. */
  readonly onOutput: () => void
}

export class ReceiveWindows {
  readonly #sizes: WindowSizes
  readonly #output: Output
  readonly #events: WindowEvents
  /** Bytes that the peer may send, and those that were read since the last WINDOW_UPDATE. */
  #window: number
  #unacknowledged = 0
  /** Bytes that paused streams hold, and those of them for which the connection's window stays shut. */
  #held = 0
  #deferred = 0
  #isStopped = false

  constructor(sizes: WindowSizes, output: Output, events: WindowEvents) {
    this.#sizes = sizes
    this.#output = output
    this.#events = events
    this.#window = sizes.connectionWindow
  }

  /** Opens no window any more. */
  stop(): void {
    this.#isStopped = true
  }

  /**
   * The peer has sent so many bytes of DATA.
   * @throws ConnectionError if they exceed the window of the connection
   */
  charge(bytes: number): void {
    this.#window -= bytes
    if (this.#window >= 0) return
    throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, "the window of the connection is exceeded")
  }

  /** The bytes were read or dropped, so that the peer may send as many again. */
  credit(bytes: number): void {
    this.#unacknowledged += bytes
    if (this.#unacknowledged < this.#sizes.connectionWindow / 2 || this.#isStopped) return
    this.#output.add(Frame.windowUpdate(0, this.#unacknowledged))
    this.#window += this.#unacknowledged
    this.#unacknowledged = 0
    this.#events.onOutput()
  }

  /** The bytes of an open stream were read. */
  creditStream(stream: Stream, bytes: number): void {
    stream.unacknowledged += bytes
    if (stream.unacknowledged < this.#sizes.streamWindow / 2 || stream.isRemoteEnded || stream.isClosed) return
    this.#output.add(Frame.windowUpdate(stream.id, stream.unacknowledged))
    stream.receiveWindow += stream.unacknowledged
    stream.unacknowledged = 0
    this.#events.onOutput()
  }

  /** Keeps data that arrives while the reader has paused. */
  hold(stream: Stream, part: Buffer): void {
    const { length } = part
    const held = (stream.held ??= new HeldData())
    held.add(part)
    this.#held += length
    if (this.#held > maxHeldBytes) this.#deferred += length
    else this.credit(length)
    this.#events.onHeld(length)
  }

  /** Passes on what was held back, until the reader pauses again. */
  readHeld(stream: Stream): void {
    while (!stream.isPaused && !stream.isClosed) {
      const part = stream.held?.shift()
      if (part === undefined) return
      this.#release(part.length)
      this.creditStream(stream, part.length)
      stream.handler?.onData(part)
    }
  }

  /** Drops what was held back. */
  dropHeld(stream: Stream): void {
    if (stream.held !== undefined) this.#release(stream.held.length)
    stream.held = undefined
  }

  #release(bytes: number): void {
    if (bytes === 0) return
    this.#held -= bytes
    const deferred = Math.min(bytes, this.#deferred)
    this.#deferred -= deferred
    if (deferred > 0) {
      this.credit(deferred)
      this.#events.onOutput()
    }
    this.#events.onHeld(-bytes)
  }
}
