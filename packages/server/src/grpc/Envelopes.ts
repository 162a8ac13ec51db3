/**
 * Follows the messages on a stream by their envelopes, a flag byte and four bytes of length each, without keeping them: how
 * many have come, and how much of the one that is not whole. gRPC, gRPC-Web and Connect's streams all have these.
 */
export class Envelopes {
  /** Messages that have come completely. */
  count = 0
  /** Bytes of the next one so far, with its envelope. */
  incomplete = 0
  #length = 0

  add(chunk: Uint8Array): void {
    let offset = 0
    while (offset < chunk.length) {
      if (this.incomplete < prefixLength) {
        const byte = chunk[offset++] ?? 0
        if (this.incomplete > 0) this.#length = this.#length * 256 + byte
        this.incomplete += 1
      } else {
        const part = Math.min(prefixLength + this.#length - this.incomplete, chunk.length - offset)
        offset += part
        this.incomplete += part
      }
      if (this.incomplete >= prefixLength && this.incomplete === prefixLength + this.#length) {
        this.count += 1
        this.incomplete = 0
        this.#length = 0
      }
    }
  }
}

const prefixLength = 5
