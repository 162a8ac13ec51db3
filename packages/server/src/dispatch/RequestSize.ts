/**
 * Memory that a request holds until its response, in bytes: the whole buffers that its tensors are views of, without
 * its strings.
 */
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"

/** Raw tensors keep the whole message or body that they came in. */
export const of = ({ id, inputs }: WireRequest): number => {
  let size = id.length
  let last: ArrayBufferLike | undefined
  for (const { bytes } of inputs) {
    if (bytes.buffer === last) continue
    last = bytes.buffer
    size += last.byteLength
  }
  return size
}
