/** Writes texts as elements of a BYTES tensor, each behind its length, into one buffer that grows. */
export class ElementWriter {
  #buffer = new Uint8Array(256)
  #view = new DataView(this.#buffer.buffer)
  #length = 0

  /** Appends one element, as UTF-8. */
  write(text: string): void {
    // UTF-8 needs at most 3 bytes for a UTF-16 unit.
    const needed = this.#length + 4 + 3 * text.length
    if (needed > this.#buffer.length) this.#grow(needed)
    const { written } = encoder.encodeInto(text, this.#buffer.subarray(this.#length + 4))
    this.#view.setUint32(this.#length, written, true)
    this.#length += 4 + written
  }

  /** The elements so far. A view: the next write may change the memory behind it. */
  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  #grow(needed: number): void {
    const grown = new Uint8Array(Math.max(needed, 2 * this.#buffer.length))
    grown.set(this.#buffer)
    this.#buffer = grown
    this.#view = new DataView(grown.buffer)
  }
}

const encoder = new TextEncoder()
