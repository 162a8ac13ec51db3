/**
 * Large memory of a single request, freed explicitly at its end. Garbage collection of it would cost several times the
 * rest of the request: V8 marks the whole heap for every 64 MB of array buffers, however short-lived.
 */
import * as GarbageCollector from "./GarbageCollector.ts"

/** Buffers below this size, in bytes, are left to the garbage collector. */
const minLargeSize = 16 * 1024

/** Size of the widest element. Tensors at its multiples can be read without a copy. */
const alignment = 8

/** Whether the memory can be freed; a small tensor shares its buffer with others. */
export const isLarge = ({ byteLength }: Uint8Array): boolean => byteLength >= minLargeSize

/**
 * Memory of `length` bytes; at the offset `aligned` an element of any datatype may begin. `diesYoung`: neither this
 * package nor node keeps the memory once its request is over.
 */
export const allocate = (length: number, aligned: number, diesYoung = false): Uint8Array => {
  if (length < minLargeSize) return Buffer.allocUnsafe(length)
  GarbageCollector.allocated(length, diesYoung)
  const before = (alignment - (aligned % alignment)) % alignment
  return Buffer.allocUnsafeSlow(before + length).subarray(before)
}

/**
 * Frees the memory of these bytes, unless it is shared. Other views of it become empty; no write of it may be pending.
 */
export const free = (bytes: Uint8Array): void => {
  const { buffer, byteOffset, byteLength } = bytes
  if (!isLarge(bytes) || byteOffset >= alignment || byteOffset + byteLength !== buffer.byteLength) return
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}
