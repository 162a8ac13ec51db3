/**
 * Data of a stream whose reader has paused. Small parts are joined: a window of bytes that come one by one would
 * otherwise be held as millions of objects.
 */

/** Parts below this are copied to their predecessor. A larger part is a view on what was read from the socket. */
const small = 4096

/** Memory for small parts. */
const blockSize = 16_384

export class HeldData {
  /** Bytes that are held. */
  length = 0
  #parts: Array<Buffer> = []
  /** Memory for small parts, of which the last part is the beginning. */
  #block: Buffer | undefined
  #used = 0

  add(part: Buffer): void {
    this.length += part.length
    if (part.length >= small) {
      this.#block = undefined
      this.#parts.push(part)
      return
    }
    if (this.#block === undefined || this.#block.length - this.#used < part.length) {
      // The first one is as small as the part, for a reader that pauses for a single message.
      const size = this.#parts.length === 0 ? part.length : blockSize
      this.#block = Buffer.allocUnsafeSlow(size)
      this.#used = 0
      this.#parts.push(this.#block.subarray(0, 0))
    }
    this.#block.set(part, this.#used)
    this.#used += part.length
    this.#parts[this.#parts.length - 1] = this.#block.subarray(0, this.#used)
  }

  /** Takes the first part. */
  shift(): Buffer | undefined {
    const part = this.#parts.shift()
    if (part === undefined) return undefined
    if (this.#parts.length === 0) this.#block = undefined
    this.length -= part.length
    return part
  }
}
