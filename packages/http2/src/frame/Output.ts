/**
 * Bytes that a connection has to write. Small frames are packed into slabs, which connections take in turns, so that
 * an idle connection holds no memory. Large payloads are not copied.
 */
import { headLength, writeHead } from "./Frame.ts"

/** Bytes that frames are written into, one behind the other: dozens of small responses. */
const slabSize = 8192

/** Below this, the rest of a slab is not used again. */
const minRest = 1024

/** From here on a payload is not copied. */
const large = 4096

interface Slab {
  readonly bytes: Buffer
  end: number
}

/** Slabs with room, which no connection uses now. */
const slabs: Array<Slab> = []

/** Connections that write in one turn of the event loop; further ones leave a slab each to the garbage collector. */
const maxSlabs = 512

const takeSlab = (length: number): Slab => {
  const slab = slabs.pop()
  if (slab !== undefined && slab.bytes.length - slab.end >= length) return slab
  return { bytes: Buffer.allocUnsafeSlow(Math.max(slabSize, length)), end: 0 }
}

const giveSlab = (slab: Slab): void => {
  if (slab.bytes.length - slab.end >= minRest && slabs.length < maxSlabs) slabs.push(slab)
}

export class Output {
  /** Bytes that were added since the last `take`. */
  size = 0
  /** The memory that `reserve` has reserved last. */
  bytes: Buffer = noBytes
  #slab: Slab | undefined
  #start = 0
  #pieces: Array<Buffer> = []

  /** Reserves memory of `bytes`, which the caller must fill at once. Returns its offset. */
  reserve(length: number): number {
    let slab = this.#slab
    if (slab === undefined || slab.bytes.length - slab.end < length) {
      this.#seal()
      slab = this.#slab = takeSlab(length)
      this.bytes = slab.bytes
      this.#start = slab.end
    }
    const offset = slab.end
    slab.end += length
    this.size += length
    return offset
  }

  /** Adds bytes, which must not change any more. */
  add(bytes: Uint8Array): void {
    const { length } = bytes
    if (length < large) {
      const offset = this.reserve(length)
      this.bytes.set(bytes, offset)
      return
    }
    this.#cut()
    this.#pieces.push(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, length))
    this.size += length
  }

  frame(type: number, flags: number, stream: number, payload: Uint8Array): void {
    const offset = this.reserve(headLength)
    writeHead(this.bytes, offset, payload.length, type, flags, stream)
    if (payload.length > 0) this.add(payload)
  }

  /** Returns everything that was added, in order. */
  take(): ReadonlyArray<Buffer> {
    this.#seal()
    const pieces = this.#pieces
    this.#pieces = []
    this.size = 0
    return pieces
  }

  /** Ends the current piece; the next one begins behind it in the same slab. */
  #cut(): void {
    const slab = this.#slab
    if (slab === undefined || slab.end === this.#start) return
    this.#pieces.push(slab.bytes.subarray(this.#start, slab.end))
    this.#start = slab.end
  }

  #seal(): void {
    this.#cut()
    if (this.#slab === undefined) return
    giveSlab(this.#slab)
    this.#slab = undefined
    this.bytes = noBytes
  }
}

const noBytes = Buffer.alloc(0)
