/** The header block of a HEADERS frame and its CONTINUATION frames (RFC 9113, 4.3 and 6.10). */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import { Flag, readUint31 } from "../frame/Frame.ts"

/** Bytes of a header block, encoded. */
export const maxBlockSize = 65_536

/** CONTINUATION frames of a header block: four hold the largest one, if they are full. */
export const maxContinuations = 16

export class PendingBlock {
  readonly stream: number
  /** Whether the message ends with the block. */
  readonly isLast: boolean
  /** The stream that this one depends on, by its priority; undefined without one. */
  readonly dependency: number | undefined
  isComplete: boolean
  bytes: Buffer
  #continuations = 0

  constructor(stream: number, flags: number, payload: Buffer) {
    const isPadded = (flags & Flag.PADDED) !== 0
    const hasPriority = (flags & Flag.PRIORITY) !== 0
    const start = (isPadded ? 1 : 0) + (hasPriority ? 5 : 0)
    if (payload.length < start) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "HEADERS is too short")
    const padding = isPadded ? (payload[0] ?? 0) : 0
    if (start + padding > payload.length) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `HEADERS has ${padding} bytes of padding`)
    }
    this.stream = stream
    this.isLast = (flags & Flag.END_STREAM) !== 0
    this.dependency = hasPriority ? readUint31(payload, isPadded ? 1 : 0) : undefined
    this.isComplete = (flags & Flag.END_HEADERS) !== 0
    this.bytes = start + padding === 0 ? payload : payload.subarray(start, payload.length - padding)
  }

  /** Copies what has arrived, which the next chunk would not leave in place. */
  own(): void {
    this.bytes = Buffer.from(this.bytes)
  }

  add(flags: number, payload: Buffer): void {
    this.#continuations += 1
    const size = this.bytes.length + payload.length
    if (size > maxBlockSize || this.#continuations > maxContinuations) {
      const message = `a header block has ${size} bytes in ${this.#continuations} continuations`
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, message)
    }
    this.bytes = Buffer.concat([this.bytes, payload])
    this.isComplete = (flags & Flag.END_HEADERS) !== 0
  }
}
