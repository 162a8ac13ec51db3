/**
 * Large memory that belongs to one request, given back at once. Left to the garbage collector it costs several times what
 * the request does otherwise: V8 marks the whole heap again for every 64 MB of array buffers that have come and gone,
 * however short they lived.
 */
import * as GarbageCollector from "./GarbageCollector.ts"

/** Bytes below which it is not worth it. */
const worthwhile = 16 * 1024

/** The widest element: where tensors begin at its multiples, nothing has to copy them to read them. */
const alignment = 8

/** Whether it is worth it; a small tensor is not alone in its memory. */
export const isLarge = ({ byteLength }: Uint8Array): boolean => byteLength >= worthwhile

/**
 * Memory for so many bytes, of which the one at `aligned` is where an element of any datatype may begin. `diesYoung` says
 * that nothing of ours or of node keeps it once its request is over.
 */
export const allocate = (length: number, aligned: number, diesYoung = false): Uint8Array => {
  if (length < worthwhile) return Buffer.allocUnsafe(length)
  GarbageCollector.allocated(length, diesYoung)
  const before = (alignment - (aligned % alignment)) % alignment
  return Buffer.allocUnsafeSlow(before + length).subarray(before)
}

/**
 * Frees the memory under these bytes, where it is theirs alone. Whoever still holds a view of it finds that empty; a write
 * of it must not be under way.
 */
export const free = (bytes: Uint8Array): void => {
  const { buffer, byteOffset, byteLength } = bytes
  if (!isLarge(bytes) || byteOffset >= alignment || byteOffset + byteLength !== buffer.byteLength) return
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}
