/**
 * A keyed 128-bit hash that represents tensors in cache keys: Chaskey (Mouha et al., 2014; ISO/IEC 29192-6), a message
 * authentication code of 32-bit additions, rotations and exclusive ors, which are fast in JavaScript.
 *
 * The key is secret and random, so that clients cannot construct two requests with the same digest. The probability of
 * a random collision among a billion requests is below 10^-20. Digests must not leave the process.
 */

/** Four words of 32 bits. */
export type Key = readonly [number, number, number, number]

export const randomKey = (): Key => {
  const [a = 0, b = 0, c = 0, d = 0] = crypto.getRandomValues(new Int32Array(4))
  return [a, b, c, d]
}

/** The digest of all of these one after the other. Where one ends and the next begins does not show in it. */
export type Digest = (parts: Iterable<Uint8Array>) => string

const blockBytes = 16

export const make = (key: Key): Digest => {
  const whole = doubled(key)
  const padded = doubled(whole)

  return (parts) => {
    const state = new State(key)
    // The last block is not known before the end: it is kept back.
    const rest = new Uint8Array(blockBytes)
    const restWords = new Int32Array(rest.buffer)
    let kept = 0
    for (const part of parts) {
      let offset = 0
      if (kept > 0) {
        offset = Math.min(blockBytes - kept, part.length)
        rest.set(part.subarray(0, offset), kept)
        kept += offset
        if (offset === part.length) continue
        state.absorb(restWords, 0, 4)
        kept = 0
      }
      const left = part.length - offset
      const blocks = Math.ceil(left / blockBytes) - 1
      if (blocks > 0) state.absorb(words(part, offset, blocks * 4), 0, blocks * 4)
      const last = part.subarray(offset + Math.max(0, blocks) * blockBytes)
      rest.set(last)
      kept = last.length
    }
    if (kept < blockBytes) {
      rest.fill(0, kept)
      rest[kept] = 1
    }
    return state.end(restWords, kept === blockBytes ? whole : padded)
  }
}

/** The bytes as words in the machine's byte order. Digests differ between byte orders, but never leave the machine. */
const words = (bytes: Uint8Array, offset: number, count: number): Int32Array => {
  const start = bytes.byteOffset + offset
  if (start % 4 === 0) return new Int32Array(bytes.buffer, start, count)
  return new Int32Array(new Uint8Array(bytes.subarray(offset, offset + count * 4)).buffer)
}

class State {
  #a: number
  #b: number
  #c: number
  #d: number

  constructor([a, b, c, d]: Key) {
    this.#a = a
    this.#b = b
    this.#c = c
    this.#d = d
  }

  /** Words from `start` up to `end` (exclusive), four at a time. */
  absorb(block: Int32Array, start: number, end: number): void {
    let [a, b, c, d] = [this.#a, this.#b, this.#c, this.#d]
    for (let word = start; word < end; word += 4) {
      a ^= block[word] ?? 0
      b ^= block[word + 1] ?? 0
      c ^= block[word + 2] ?? 0
      d ^= block[word + 3] ?? 0
      for (let round = 0; round < 8; round++) {
        a = (a + b) | 0
        b = ((b << 5) | (b >>> 27)) ^ a
        a = (a << 16) | (a >>> 16)
        c = (c + d) | 0
        d = ((d << 8) | (d >>> 24)) ^ c
        a = (a + d) | 0
        d = ((d << 13) | (d >>> 19)) ^ a
        c = (c + b) | 0
        b = ((b << 7) | (b >>> 25)) ^ c
        c = (c << 16) | (c >>> 16)
      }
    }
    this.#a = a
    this.#b = b
    this.#c = c
    this.#d = d
  }

  end(last: Int32Array, [a, b, c, d]: Key): string {
    this.#mix(a, b, c, d)
    this.absorb(last, 0, 4)
    this.#mix(a, b, c, d)
    const units = [this.#a, this.#b, this.#c, this.#d].flatMap((word) => [word & 0xffff, word >>> 16])
    return String.fromCharCode(...units)
  }

  #mix(a: number, b: number, c: number, d: number): void {
    this.#a ^= a
    this.#b ^= b
    this.#c ^= c
    this.#d ^= d
  }
}

/** Times x in the field of 2^128 elements. */
const doubled = ([a, b, c, d]: Key): Key => [
  (a << 1) ^ (d < 0 ? 0x87 : 0),
  (b << 1) | (a >>> 31),
  (c << 1) | (b >>> 31),
  (d << 1) | (c >>> 31),
]
