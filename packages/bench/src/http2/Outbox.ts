/**
 * Write buffer of a connection. Small frames are packed into slabs; large payloads are not copied. Everything added in
 * one turn of the event loop is sent in one write.
 */
import type { Writable } from "node:stream"

/** Bytes that frames are written into, one behind the other. */
const slabSize = 65_536

/** From here on a payload is not copied. */
const large = 4096

export class Outbox {
  readonly #socket: Writable
  #slab = Buffer.allocUnsafeSlow(slabSize)
  /** Start and end of the unsealed part of the slab. */
  #start = 0
  #end = 0
  #pieces: Array<Buffer> = []

  constructor(socket: Writable) {
    this.#socket = socket
  }

  /** Reserves memory, which the caller must fill at once: a buffer and an offset into it. */
  reserve(length: number): { readonly slab: Buffer; readonly offset: number } {
    if (this.#end + length > this.#slab.length) {
      this.#seal()
      this.#slab = Buffer.allocUnsafeSlow(Math.max(slabSize, length))
      this.#start = 0
      this.#end = 0
    }
    const offset = this.#end
    this.#end += length
    return { slab: this.#slab, offset }
  }

  /** The bytes must not change any more. */
  add(bytes: Buffer): void {
    if (bytes.length < large) {
      const { slab, offset } = this.reserve(bytes.length)
      slab.set(bytes, offset)
    } else {
      this.#seal()
      this.#pieces.push(bytes)
    }
  }

  flush(): void {
    this.#seal()
    const [first, ...others] = this.#pieces
    if (first === undefined) return
    this.#pieces = []
    if (others.length === 0) {
      this.#socket.write(first)
      return
    }
    this.#socket.cork()
    this.#socket.write(first)
    for (const piece of others) this.#socket.write(piece)
    this.#socket.uncork()
  }

  #seal(): void {
    if (this.#end === this.#start) return
    this.#pieces.push(this.#slab.subarray(this.#start, this.#end))
    this.#start = this.#end
  }
}
