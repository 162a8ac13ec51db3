/**
 * Reads the frames of a connection (RFC 9113, 4.1) from chunks that may be cut anywhere. The payload of DATA is passed
 * on as it arrives, without padding, in any number of parts. Other payloads are passed on whole. A frame that is within
 * one chunk is not copied.
 */
import { ConnectionError, ErrorCode } from "./ErrorCode.ts"
import { defaults, Flag, headLength, readUint31, Type } from "./Frame.ts"

export interface FrameHandler {
  /** A DATA frame begins. `length` is that of its payload with padding, which its stream's window is charged with. */
  readonly onDataHead: (stream: number, flags: number, length: number) => void
  /** Part of the payload of that frame. `isLast`: the frame is complete. The part may be empty then. */
  readonly onDataPart: (part: Buffer, isLast: boolean) => void
  readonly onFrame: (type: number, flags: number, stream: number, payload: Buffer) => void
}

export class FrameReader {
  readonly #handler: FrameHandler
  /** The beginning of a frame that is not complete, and its length, as far as it is known. */
  #pending = noBytes
  #pendingLength = 0
  #needed = 0
  /** Rest of the payload and padding of the current DATA frame, in bytes. */
  #payload = 0
  #padding = 0
  #isStopped = false
  /** Frames whose beginning was kept. */
  #kept = 0

  constructor(handler: FrameHandler) {
    this.#handler = handler
  }

  /** A number of the frame that has begun and is not complete, without DATA whose head is complete; 0 without one. */
  get unfinished(): number {
    return this.#pendingLength > 0 ? this.#kept : 0
  }

  /** Reads nothing further, not even the rest of the current chunk. */
  stop(): void {
    this.#isStopped = true
    this.#pendingLength = 0
    this.#pending = noBytes
  }

  /**
   * Reads all frames that begin before the offset `enough`. Returns the offset at which the next one begins: the rest
   * of the chunk must be read next. @throws ConnectionError
   */
  read(chunk: Buffer, enough = chunk.length): number {
    let offset = this.#pendingLength > 0 ? this.#complete(chunk) : 0
    if (this.#payload + this.#padding > 0) offset = this.#readData(chunk, offset)
    while (!this.#isStopped && offset < enough && chunk.length - offset >= headLength) {
      const length = lengthOf(chunk, offset)
      const end = offset + bytesNeeded(chunk, offset, length)
      if (end > chunk.length) break
      offset = this.#frame(chunk, offset, end, length)
    }
    if (this.#isStopped) return chunk.length
    if (offset >= enough || offset === chunk.length) return offset
    this.#keep(chunk, offset)
    return chunk.length
  }

  /** Reads a frame whose head begins at `start`. Returns the offset of the next one. */
  #frame(bytes: Buffer, start: number, end: number, length: number): number {
    const type = bytes[start + 3] ?? 0
    const flags = bytes[start + 4] ?? 0
    const stream = readUint31(bytes, start + 5)
    if (type !== Type.DATA) {
      this.#handler.onFrame(type, flags, stream, bytes.subarray(start + headLength, end))
      return end
    }
    this.#beginData(bytes, start, flags, stream, length)
    return this.#readData(bytes, end)
  }

  #beginData(bytes: Buffer, start: number, flags: number, stream: number, length: number): void {
    const isPadded = (flags & Flag.PADDED) !== 0
    if (isPadded && length === 0) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "a padded DATA frame is empty")
    this.#padding = isPadded ? (bytes[start + headLength] ?? 0) : 0
    this.#payload = length - (isPadded ? 1 : 0) - this.#padding
    if (this.#payload < 0) {
      const message = `a DATA frame of ${length} bytes has ${this.#padding} bytes of padding`
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, message)
    }
    this.#handler.onDataHead(stream, flags, length)
  }

  /** Passes on the payload of the current DATA frame. Returns the offset after it. */
  #readData(bytes: Buffer, start: number): number {
    if (this.#isStopped) return bytes.length
    const end = Math.min(bytes.length, start + this.#payload)
    this.#payload -= end - start
    let offset = end
    if (this.#payload === 0) {
      const skipped = Math.min(this.#padding, bytes.length - end)
      this.#padding -= skipped
      offset += skipped
    }
    const isLast = this.#payload + this.#padding === 0
    if (isLast || end > start) this.#handler.onDataPart(bytes.subarray(start, end), isLast)
    return offset
  }

  /** Keeps the beginning of a frame, in memory of its own. */
  #keep(chunk: Buffer, offset: number): void {
    const length = chunk.length - offset
    this.#needed = length < headLength ? headLength : bytesNeeded(chunk, offset, lengthOf(chunk, offset))
    this.#pending = Buffer.allocUnsafe(this.#needed)
    this.#pending.set(chunk.subarray(offset))
    this.#pendingLength = length
    this.#kept += 1
  }

  /** Reads the rest of a frame that has begun in an earlier chunk. Returns the offset after it. */
  #complete(chunk: Buffer): number {
    let offset = 0
    for (;;) {
      const taken = Math.min(this.#needed - this.#pendingLength, chunk.length - offset)
      this.#pending.set(chunk.subarray(offset, offset + taken), this.#pendingLength)
      this.#pendingLength += taken
      offset += taken
      if (this.#pendingLength < this.#needed) return offset
      const length = lengthOf(this.#pending, 0)
      const needed = bytesNeeded(this.#pending, 0, length)
      if (needed > this.#needed) {
        this.#needed = needed
        const larger = Buffer.allocUnsafe(needed)
        larger.set(this.#pending)
        this.#pending = larger
        continue
      }
      const bytes = this.#pending
      this.#pending = noBytes
      this.#pendingLength = 0
      const type = bytes[3] ?? 0
      const flags = bytes[4] ?? 0
      const stream = readUint31(bytes, 5)
      if (type !== Type.DATA) this.#handler.onFrame(type, flags, stream, bytes.subarray(headLength))
      else {
        this.#beginData(bytes, 0, flags, stream, length)
        if (this.#payload + this.#padding === 0) this.#handler.onDataPart(noBytes, true)
      }
      return offset
    }
  }
}

const noBytes = Buffer.alloc(0)

/** Length of the payload of the frame at `offset`. */
const lengthOf = (bytes: Uint8Array, offset: number): number => {
  const length = ((bytes[offset] ?? 0) << 16) | ((bytes[offset + 1] ?? 0) << 8) | (bytes[offset + 2] ?? 0)
  if (length > defaults.frameSize) {
    const message = `a frame has ${length} bytes, at most ${defaults.frameSize} are allowed`
    throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, message)
  }
  return length
}

/** Bytes of a frame that must be there before it is read: all, but of DATA only the head and the length of padding. */
const bytesNeeded = (bytes: Uint8Array, offset: number, length: number): number => {
  if (bytes[offset + 3] !== Type.DATA) return headLength + length
  const isPadded = ((bytes[offset + 4] ?? 0) & Flag.PADDED) !== 0
  return isPadded && length > 0 ? headLength + 1 : headLength
}
