/**
 * Counts the messages on a stream by their envelopes, and the bytes of the incomplete one, without keeping data. gRPC,
 * gRPC-Web and Connect streams use the same framing.
 */
import { messageLength, prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"

export class Envelopes {
  /** Messages that have arrived completely. */
  count = 0
  /** Bytes of the next message that have arrived, with its envelope. */
  incomplete = 0
  readonly #prefix = new Uint8Array(prefixLength)
  #length = 0

  add(chunk: Uint8Array): void {
    let offset = 0
    while (offset < chunk.length) {
      if (this.incomplete < prefixLength) {
        this.#prefix[this.incomplete++] = chunk[offset++] ?? 0
        if (this.incomplete < prefixLength) continue
        this.#length = messageLength(this.#prefix, 0)
      } else {
        const part = Math.min(prefixLength + this.#length - this.incomplete, chunk.length - offset)
        offset += part
        this.incomplete += part
      }
      if (this.incomplete < prefixLength + this.#length) continue
      this.count += 1
      this.incomplete = 0
    }
  }
}
