/** Reads the DATA frames of a connection (RFC 9113, 6.1), which arrive in parts, and passes their payloads on. */
import { ErrorCode } from "../frame/ErrorCode.ts"
import { Flag, Type } from "../frame/Frame.ts"
import type { FloodBudget } from "./FloodBudget.ts"
import type { ReceiveWindows } from "./ReceiveWindows.ts"
import type { Stream } from "./Stream.ts"
import type { Streams } from "./Streams.ts"

export class DataFrames {
  readonly #streams: Streams
  readonly #windows: ReceiveWindows
  readonly #flood: FloodBudget
  /** The frame that is being read: its stream, unless it is ignored. */
  #stream: Stream | undefined
  #endsStream = false
  /** Bytes of its payload and padding that are still to come. */
  #left = 0
  /** Whether parts may still be read, since this was last set to false. */
  hasKept = false

  constructor(streams: Streams, windows: ReceiveWindows, flood: FloodBudget) {
    this.#streams = streams
    this.#windows = windows
    this.#flood = flood
  }

  /** A frame begins. @throws ConnectionError */
  onHead(id: number, flags: number, length: number): void {
    this.#windows.charge(length)
    const endsStream = (flags & Flag.END_STREAM) !== 0
    if (length > 0 || endsStream) this.#flood.useful()
    else this.#flood.spend(1)
    this.#left = length
    this.#endsStream = endsStream
    const streams = this.#streams
    const stream = streams.existing(id, Type.DATA)
    this.#stream = stream
    if (stream === undefined) return
    stream.receiveWindow -= length
    if (stream.isRemoteEnded) streams.streamError(stream, ErrorCode.STREAM_CLOSED)
    else if (stream.receiveWindow < 0) streams.streamError(stream, ErrorCode.FLOW_CONTROL_ERROR)
    else if (!streams.isServer && !stream.hasReceivedHead) streams.streamError(stream, ErrorCode.PROTOCOL_ERROR)
  }

  /** The next part of its payload. @throws ConnectionError */
  onPart(part: Buffer, isLast: boolean): void {
    const { length } = part
    const stream = this.#stream
    const windows = this.#windows
    // The rest of the frame is padding.
    const padding = isLast ? this.#left - length : 0
    this.#left -= length
    // A closed stream would live as long as its connection is idle.
    if (isLast) this.#stream = undefined
    if (stream === undefined || stream.isClosed) return windows.credit(length + padding)
    if (padding > 0) {
      windows.credit(padding)
      windows.creditStream(stream, padding)
    }
    const ends = isLast && this.#endsStream
    if (stream.expected >= 0) {
      stream.expected -= length
      if (stream.expected < 0 || (ends && stream.expected > 0)) {
        windows.credit(length)
        return this.#streams.streamError(stream, ErrorCode.PROTOCOL_ERROR)
      }
    }
    // Before its reader has the last bytes: a response to them ends the stream.
    if (ends) stream.isRemoteEnded = true
    if (length > 0) {
      if (stream.isPaused) {
        windows.hold(stream, part)
        this.hasKept = true
      } else {
        windows.credit(length)
        windows.creditStream(stream, length)
        const { hasKept } = this
        // Also if it throws.
        this.hasKept = true
        if (stream.handler?.onData(part) !== true) this.hasKept = hasKept
      }
    }
    if (ends) this.#streams.endRemote(stream, undefined)
  }
}
