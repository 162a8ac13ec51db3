/**
 * Parses the HTTP/2 frames of a connection (RFC 9113, 4.1). The payload of DATA is passed on as it arrives, without
 * padding, in any number of parts. Other payloads are passed on whole.
 */
import { defaults, Flag, headLength, Type } from "./Frame.ts"

export interface FrameHandler {
  /** `counted` are the bytes that it takes of the windows: those of its padding too. `last` ends the stream. */
  readonly onData: (stream: number, part: Buffer, counted: number, last: boolean) => void
  readonly onFrame: (type: number, flags: number, stream: number, payload: Buffer) => void
}

/** Error for bytes that are not HTTP/2 or violate its rules. */
export class FrameError extends Error {}

const noBytes = Buffer.alloc(0)

export class FrameReader {
  readonly #handler: FrameHandler
  /** The beginning of a frame whose rest has not come. */
  #rest: Buffer = noBytes
  /** Remaining payload and padding of the current DATA frame, in bytes. */
  #payload = 0
  #padding = 0
  #stream = 0
  #last = false

  constructor(handler: FrameHandler) {
    this.#handler = handler
  }

  /** @throws FrameError */
  read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let offset = this.#payload + this.#padding > 0 ? this.#readData(bytes, 0, 0) : 0
    while (bytes.length - offset >= headLength) {
      const length = bytes.readUIntBE(offset, 3)
      const type = bytes[offset + 3] ?? 0
      const flags = bytes[offset + 4] ?? 0
      const stream = bytes.readUInt32BE(offset + 5) & 0x7fff_ffff
      const start = offset + headLength
      if (length > defaults.frameSize) {
        throw new FrameError(`a frame has ${length} bytes, at most ${defaults.frameSize} are allowed`)
      }
      if (type === Type.DATA) {
        const padded = (flags & Flag.PADDED) !== 0
        if (padded && start === bytes.length && length > 0) break
        const lengthBytes = padded ? 1 : 0
        this.#stream = stream
        this.#last = (flags & Flag.END_STREAM) !== 0
        this.#padding = padded ? (bytes[start] ?? 0) : 0
        this.#payload = length - lengthBytes - this.#padding
        if (this.#payload < 0)
          throw new FrameError(`a DATA frame of ${length} bytes has ${this.#padding} bytes of padding`)
        offset = this.#readData(bytes, start + lengthBytes, lengthBytes)
        continue
      }
      const end = start + length
      if (end > bytes.length) break
      this.#handler.onFrame(type, flags, stream, unpadded(type, flags, bytes.subarray(start, end)))
      offset = end
    }
    this.#rest = offset === bytes.length ? noBytes : bytes.subarray(offset)
  }

  /**
   * Passes on part of a DATA frame and returns the offset after it. `counted`: bytes of the frame before the payload.
   */
  #readData(bytes: Buffer, start: number, counted: number): number {
    const part = bytes.subarray(start, start + this.#payload)
    this.#payload -= part.length
    const offset = start + part.length
    const skipped = this.#payload === 0 ? Math.min(this.#padding, bytes.length - offset) : 0
    this.#padding -= skipped
    const last = this.#last && this.#payload + this.#padding === 0
    this.#handler.onData(this.#stream, part, counted + part.length + skipped, last)
    return offset + skipped
  }
}

/** Removes padding, and the priority of HEADERS (RFC 9113, 6.2). */
const unpadded = (type: number, flags: number, payload: Buffer): Buffer => {
  if (type !== Type.HEADERS) return payload
  const padding = (flags & Flag.PADDED) === 0 ? 0 : (payload[0] ?? 0)
  const start = ((flags & Flag.PADDED) === 0 ? 0 : 1) + ((flags & Flag.PRIORITY) === 0 ? 0 : 5)
  if (start + padding > payload.length) throw new FrameError(`${padding} bytes of padding in HEADERS`)
  return payload.subarray(start, payload.length - padding)
}
