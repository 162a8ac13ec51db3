/** The body of a frame: byte arrays as their owners have them, and the zero bytes between them that align tensors. */

/** Tensors begin at multiples of this. */
const alignment = 16

/** The first multiple of the alignment from `length` on. */
export const aligned = (length: number): number => Math.ceil(length / alignment) * alignment

const zeros = new Uint8Array(alignment)

export class FrameBody {
  /** In their order, without empty ones. */
  readonly chunks: Array<Uint8Array> = []
  length = 0

  /** Adds the bytes of a tensor, at an aligned offset. They must not change until they are sent. */
  add(bytes: Uint8Array): void {
    const padding = aligned(this.length) - this.length
    if (padding > 0) {
      this.chunks.push(zeros.subarray(0, padding))
      this.length += padding
    }
    this.append(bytes)
  }

  /** Adds bytes right behind the last ones. */
  append(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.chunks.push(bytes)
    this.length += bytes.length
  }
}
