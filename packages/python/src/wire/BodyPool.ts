/**
 * Memory for the bodies of large frames, used again: the page faults of new memory cost as much as the copy of the
 * bytes. Memory that is never given back is the garbage collector's.
 */

/** Bytes from which memory is worth keeping. */
export const minPooled = 32 * 1024

/** Free memory of one size. */
const maxOfSize = 8

/** Bytes of free memory, by default. */
const defaultMaxBytes = 64 * 2 ** 20

export interface PooledMemory {
  readonly bytes: Uint8Array
  /** Gives it back, once nothing reads it any more. Calls after the first do nothing. */
  readonly release: () => void
}

export class BodyPool {
  readonly #maxBytes: number
  readonly #free = new Map<number, Array<Uint8Array>>()
  #freeBytes = 0

  constructor(maxBytes = defaultMaxBytes) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of free memory. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Memory of `length` bytes, with arbitrary content. */
  take(length: number): PooledMemory {
    const size = sizeClass(length)
    let memory = this.#free.get(size)?.pop()
    if (memory === undefined) memory = Buffer.allocUnsafeSlow(size)
    else this.#freeBytes -= size
    let kept: Uint8Array | undefined = memory
    return {
      bytes: new Uint8Array(memory.buffer, 0, length),
      release: () => {
        if (kept !== undefined) this.#keep(kept)
        kept = undefined
      },
    }
  }

  #keep(memory: Uint8Array): void {
    const { length } = memory
    const free = this.#free.get(length) ?? []
    if (free.length >= maxOfSize || this.#freeBytes + length > this.#maxBytes) return
    this.#free.set(length, free)
    free.push(memory)
    this.#freeBytes += length
  }
}

/** Rounds up to an eighth of the next lower power of two, so that near sizes share memory. */
const sizeClass = (length: number): number => {
  const step = Math.max(4096, 2 ** (Math.floor(Math.log2(length)) - 3))
  return Math.ceil(length / step) * step
}

/** Of all processes of this thread. */
export const shared = new BodyPool()
