/**
 * Encodes the tensors of one message in one buffer, which is transferred. Bytes are copied once, because their owners
 * may still use them, and not again on the receiving side.
 */
import type { DataType } from "@nereid/core/internal/tensor/DataType"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"

/** Position of a tensor in the buffer. */
export interface PackedTensor {
  readonly datatype: DataType
  readonly shape: ReadonlyArray<number>
  readonly offset: number
  readonly length: number
}

/** Offsets are multiples of the widest element. */
const alignment = 8

export class TensorBufferWriter {
  readonly #tensors: Array<readonly [tensor: TypedTensor, offset: number]> = []
  #length = 0

  /** Adds a tensor, which must not change until the end. */
  add(tensor: TypedTensor): PackedTensor {
    const { datatype, shape, bytes } = tensor
    const offset = this.#length
    this.#tensors.push([tensor, offset])
    this.#length = Math.ceil((offset + bytes.length) / alignment) * alignment
    return { datatype, shape, offset, length: bytes.length }
  }

  end(): ArrayBuffer {
    const all = new Uint8Array(this.#length)
    for (const [{ bytes }, offset] of this.#tensors) all.set(bytes, offset)
    return all.buffer
  }
}

/** A view on the buffer. */
export const unpack = (buffer: ArrayBuffer, { datatype, shape, offset, length }: PackedTensor): TypedTensor =>
  new TypedTensor(datatype, shape, new Uint8Array(buffer, offset, length))
