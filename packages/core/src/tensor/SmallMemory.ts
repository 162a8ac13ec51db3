/**
 * Allocates memory for small tensors and documents, many of which share one buffer. A separate buffer costs about a
 * microsecond at any size, and as much for the garbage collector. Not for large tensors, or for memory that is returned
 * immediately (the server's RequestMemory.ts).
 */

/** Bytes up to which memory is shared. */
const largest = 1024

/** Maximum memory that one retained tensor keeps alive, in bytes. */
const slabSize = 8 * 1024

/** The widest element: where tensors begin at its multiples, nothing has to copy them to read them. */
const alignment = 8

let slab = new ArrayBuffer(0)
let used = 0

/** Allocates this number of zero bytes, aligned for any datatype. */
export const allocate = (length: number): Uint8Array<ArrayBuffer> => {
  if (length > largest) return new Uint8Array(length)
  if (used + length > slab.byteLength) {
    slab = new ArrayBuffer(slabSize)
    used = 0
  }
  const bytes = new Uint8Array(slab, used, length)
  used += Math.ceil(length / alignment) * alignment
  return bytes
}

/** A copy, aligned likewise. */
export const copy = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => {
  const copied = allocate(bytes.length)
  copied.set(bytes)
  return copied
}
