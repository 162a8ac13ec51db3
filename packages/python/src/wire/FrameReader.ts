/**
 * Splits the bytes of a socket into frames:
 *
 *   u32 header length │ u8 kind │ u24 released │ u64 body length │ header: JSON in UTF-8 │ body
 *
 * With the highest bit of the kind, the body is in shared memory (SharedBodies.ts), and the upper half of its length is
 * its offset there. `released` is for that memory, and 0 without.
 *
 * Small frames are read many at once into a staging buffer. Of a large one, the body is read directly into its own
 * memory, so the kernel's copy is the only one.
 */
import * as SmallMemory from "@nereid/core/internal/tensor/SmallMemory"
import { type BodyPool, minPooled, type PooledMemory } from "./BodyPool.ts"
import type { SharedBodies } from "./SharedBodies.ts"

export interface Frame {
  readonly kind: number
  /** JSON text. */
  readonly header: string
  /** Memory that belongs to the frame alone. */
  readonly body: Uint8Array
  /** Returns the memory of the body to its pool, once nothing reads it any more; undefined for memory of no pool. */
  readonly release?: (() => void) | undefined
}

export const headLength = 16

/** Bit of the kind of a frame whose body is in shared memory. */
export const inShared = 0x80
const kindMask = 0x7f

/** More than the kernel keeps for a Unix socket by default: a medium frame is one read. */
const stagingLength = 256 * 1024
/** Bytes read at first of a frame behind one from a pool: its header, and little of a body that has its own memory. */
const firstRead = 1024
const empty = new Uint8Array(0)
const constVoid = () => {}

const maxHeaderLength = 16 * 1024 * 1024
/** Bytes of one body; Node has no larger buffers on some platforms. */
const maxBodyLength = 2 ** 40

export class FrameReader {
  readonly #onFrame: (frame: Frame) => void
  readonly #pool: BodyPool | undefined
  #shared: SharedBodies | undefined
  #staging = Buffer.allocUnsafeSlow(stagingLength)
  #used = 0
  /** Set while a body is read into its own memory. */
  #body: { readonly kind: number; readonly header: string; readonly memory: PooledMemory; filled: number } | undefined
  #expectsLarge = false

  /** `onFrame` receives each frame once it is complete. `pool` has the memory of large bodies. */
  constructor(onFrame: (frame: Frame) => void, pool?: BodyPool) {
    this.#onFrame = onFrame
    this.#pool = pool
  }

  /** Reads the bodies of later frames from this memory too. */
  share(shared: SharedBodies): void {
    this.#shared = shared
  }

  /** Memory for the next bytes of the socket; never empty. */
  get space(): Uint8Array {
    if (this.#body !== undefined) return this.#body.memory.bytes.subarray(this.#body.filled)
    if (this.#used === 0 && !this.#expectsLarge) return this.#staging
    return this.#staging.subarray(this.#used, this.#expectsLarge ? this.#used + firstRead : undefined)
  }

  /**
   * Takes bytes that were read into `space`.
   * @throws Error if they are not frames
   */
  filled(count: number): void {
    const body = this.#body
    if (body !== undefined) {
      body.filled += count
      const { kind, header, memory } = body
      if (body.filled < memory.bytes.length) return
      this.#body = undefined
      return this.#onFrame({ kind, header, body: memory.bytes, release: memory.release })
    }
    this.#used += count
    this.#parse()
  }

  /**
   * Takes bytes from elsewhere.
   * @throws Error if they are not frames
   */
  push(chunk: Uint8Array): void {
    for (let offset = 0; offset < chunk.length;) {
      const { space } = this
      const part = chunk.subarray(offset, offset + space.length)
      space.set(part)
      offset += part.length
      this.filled(part.length)
    }
  }

  #parse(): void {
    let offset = 0
    while (this.#used - offset >= headLength) {
      const headerLength = this.#staging.readUInt32LE(offset)
      const word = this.#staging.readUInt32LE(offset + 4)
      const kind = word & kindMask
      const isShared = (word & inShared) !== 0
      const low = this.#staging.readUInt32LE(offset + 8)
      const high = this.#staging.readUInt32LE(offset + 12)
      const bodyLength = isShared ? 0 : low + high * 2 ** 32
      if (headerLength > maxHeaderLength || bodyLength > maxBodyLength) {
        throw new Error(`a frame has a header of ${headerLength} bytes and a body of ${bodyLength} bytes`)
      }
      const bodyAt = offset + headLength + headerLength
      if (this.#used < bodyAt) {
        this.#keep(offset, headLength + headerLength)
        return
      }
      const header = this.#staging.toString("utf8", offset + headLength, bodyAt)
      this.#shared?.peerReleased(word >>> 8)
      if (isShared) {
        offset = bodyAt
        this.#onFrame({ kind, header, ...this.#readShared(high, low) })
        continue
      }
      const available = this.#used - bodyAt
      this.#expectsLarge = bodyLength >= minPooled && this.#pool !== undefined
      if (available < bodyLength) {
        const memory = this.#allocate(bodyLength)
        memory.bytes.set(this.#staging.subarray(bodyAt, this.#used))
        this.#body = { kind, header, memory, filled: available }
        this.#used = 0
        this.#shrink()
        return
      }
      const body = this.#staging.subarray(bodyAt, bodyAt + bodyLength)
      offset = bodyAt + bodyLength
      this.#onFrame({ kind, header, ...this.#copy(body) })
    }
    this.#keep(offset, headLength)
    if (this.#used === 0) this.#shrink()
  }

  #readShared(offset: number, length: number): Pick<Frame, "body" | "release"> {
    if (this.#shared === undefined) throw new Error("a body is in shared memory, and there is none")
    const memory = this.#allocate(length)
    this.#shared.read(offset, memory.bytes)
    return { body: memory.bytes, release: memory.release }
  }

  #allocate(length: number): PooledMemory {
    if (this.#pool !== undefined && length >= minPooled) return this.#pool.take(length)
    return { bytes: Buffer.allocUnsafeSlow(length), release: constVoid }
  }

  #copy(bytes: Uint8Array): Pick<Frame, "body" | "release"> {
    if (bytes.length === 0) return { body: empty }
    if (bytes.length < minSeparate) return { body: SmallMemory.copy(bytes) }
    const memory = this.#allocate(bytes.length)
    memory.bytes.set(bytes)
    return { body: memory.bytes, release: memory.release }
  }

  /** Moves the bytes that are left to the front of a staging buffer with room for `needed` bytes. */
  #keep(offset: number, needed: number): void {
    const left = this.#used - offset
    if (needed > this.#staging.length) {
      const larger = Buffer.allocUnsafeSlow(needed)
      larger.set(this.#staging.subarray(offset, this.#used))
      this.#staging = larger
    } else if (offset > 0) {
      this.#staging.copyWithin(0, offset, this.#used)
    }
    this.#used = left
  }

  /** Drops a staging buffer that one long header needed. */
  #shrink(): void {
    if (this.#staging.length > stagingLength) this.#staging = Buffer.allocUnsafeSlow(stagingLength)
  }
}

/** Bytes from which memory is not shared with other frames, and not filled with zeros. */
const minSeparate = 1024
