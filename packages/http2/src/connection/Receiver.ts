/** Reads the frames of the peer in their order (RFC 9113, 3.4 and 4), and passes each one to what handles its type. */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Flag, Type } from "../frame/Frame.ts"
import { type FrameHandler, FrameReader } from "../frame/FrameReader.ts"
import type { ControlFrames } from "./ControlFrames.ts"
import type { DataFrames } from "./DataFrames.ts"
import type { FloodBudget } from "./FloodBudget.ts"
import type { HeaderFrames } from "./HeaderFrames.ts"
import type { Lifecycle } from "./Lifecycle.ts"

export class Receiver implements FrameHandler {
  readonly #data: DataFrames
  readonly #headers: HeaderFrames
  readonly #control: ControlFrames
  readonly #flood: FloodBudget
  readonly #lifecycle: Lifecycle
  readonly #reader = new FrameReader(this)
  /** Bytes of the client's preface that are still to come. */
  #preface: number

  constructor(
    isServer: boolean,
    data: DataFrames,
    headers: HeaderFrames,
    control: ControlFrames,
    flood: FloodBudget,
    lifecycle: Lifecycle,
  ) {
    this.#preface = isServer ? Frame.preface.length : 0
    this.#data = data
    this.#headers = headers
    this.#control = control
    this.#flood = flood
    this.#lifecycle = lifecycle
  }

  /**
   * A number of the header block or frame that has begun and is not complete; 0 without one. It stays the same until
   * the block or frame is complete.
   */
  get unfinished(): number {
    const block = this.#headers.unfinished
    return block > 0 ? -block : this.#reader.unfinished
  }

  /** Whether the program may still read parts of what was received since the last call. Only DATA is passed on. */
  takeKept(): boolean {
    const { hasKept } = this.#data
    this.#data.hasKept = false
    return hasKept
  }

  /**
   * Reads all frames that begin before the offset `enough`. Returns the offset at which the rest of the chunk begins.
   * @throws ConnectionError
   */
  read(chunk: Buffer, enough: number): number {
    if (this.#preface === 0) return this.#reader.read(chunk, enough)
    const rest = this.#readPreface(chunk)
    if (rest.length > 0) this.#reader.read(rest)
    return chunk.length
  }

  /** Reads nothing further, not even the rest of the current chunk. */
  stop(): void {
    this.#reader.stop()
    this.#headers.stop()
  }

  onDataHead(stream: number, flags: number, length: number): void {
    this.#checkOrder(Type.DATA, flags)
    this.#data.onHead(stream, flags, length)
  }

  onDataPart(part: Buffer, isLast: boolean): void {
    this.#data.onPart(part, isLast)
  }

  onFrame(type: number, flags: number, stream: number, payload: Buffer): void {
    this.#checkOrder(type, flags)
    this.#onFrame(type, flags, stream, payload)
  }

  /** Returns the bytes behind the preface. */
  #readPreface(chunk: Buffer): Buffer {
    const start = Frame.preface.length - this.#preface
    const length = Math.min(chunk.length, this.#preface)
    if (chunk.compare(Frame.preface, start, start + length, 0, length) !== 0) {
      throw protocolError("the connection does not begin with the preface of HTTP/2")
    }
    this.#preface -= length
    return chunk.subarray(length)
  }

  #checkOrder(type: number, flags: number): void {
    if (!this.#control.hasSettings && (type !== Type.SETTINGS || (flags & Flag.ACK) !== 0)) {
      throw protocolError("the first frame is not SETTINGS")
    }
    if (this.#headers.isPending && type !== Type.CONTINUATION) {
      throw protocolError("a frame interrupts a header block")
    }
  }

  #onFrame(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case Type.HEADERS:
        return this.#headers.onHeaders(flags, id, payload)
      case Type.CONTINUATION:
        return this.#headers.onContinuation(flags, id, payload)
      case Type.PRIORITY:
        return this.#control.onPriority(id, payload)
      case Type.RST_STREAM:
        return this.#control.onReset(id, payload)
      case Type.SETTINGS:
        return this.#control.onSettings(flags, id, payload)
      case Type.PUSH_PROMISE:
        throw protocolError("PUSH_PROMISE is not allowed")
      case Type.PING:
        return this.#control.onPing(flags, id, payload)
      case Type.GOAWAY:
        return this.#readGoaway(id, payload)
      case Type.WINDOW_UPDATE:
        return this.#control.onWindowUpdate(id, payload)
      default:
        // Frames of extensions are ignored (RFC 9113, 5.5).
        return this.#flood.spend(1)
    }
  }

  #readGoaway(id: number, payload: Buffer): void {
    if (id !== 0) throw protocolError("GOAWAY of a stream")
    if (payload.length < 8) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY has a wrong length")
    this.#flood.spend(1)
    this.#lifecycle.receivedGoaway(
      Frame.readUint31(payload, 0),
      Frame.readUint32(payload, 4),
      payload.toString("latin1", 8),
    )
  }
}

const protocolError = (message: string) => new ConnectionError(ErrorCode.PROTOCOL_ERROR, message)
