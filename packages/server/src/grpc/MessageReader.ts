/**
 * The messages in the body of a call, whose bytes come cut in any way: each behind a prefix of a flag and a length. A message
 * that has come in one piece stays where it is; parts of one are kept, within what all callers together may keep, and
 * joined in memory of their own: those of a large one as they come, while they are in the cache. How long a message may take is not here.
 */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import type { GrpcStatus } from "./GrpcStatus.ts"
import * as OwnMemory from "../memory/OwnMemory.ts"
import type { ReceiveBudget } from "../port/ReceiveBudget.ts"

export interface MessageLimits {
  /** The most bytes of a message. */
  readonly maxMessageSize: number
  /** For messages that are not whole; shared by all calls. */
  readonly receiveBudget: ReceiveBudget
}

/** Compressed flag and length. */
export const prefixLength = 5

/** What keeping a chunk costs beside its bytes, so that single bytes do not come cheaper than they are. */
const chunkCost = 256

/** A chunk is a view of what was read from its socket, and keeps all of that; a copy of a small one does not. */
const smallPart = 1 / 8

/** Whether the bytes are one message and nothing else, as they are where it is small: what needs no reader. */
export const isWhole = (chunk: Uint8Array, { maxMessageSize }: MessageLimits): boolean => {
  const length = chunk.length - prefixLength
  return length >= 0 && chunk[0] === 0 && length <= maxMessageSize && readLength(chunk, 0) === length
}

const readLength = (bytes: Uint8Array, prefix: number): number =>
  (bytes[prefix + 1] ?? 0) * 2 ** 24 +
  (((bytes[prefix + 2] ?? 0) << 16) | ((bytes[prefix + 3] ?? 0) << 8) | (bytes[prefix + 4] ?? 0))

/** Writes the prefix of a message of so many bytes that is not compressed. */
export const writePrefix = (bytes: Uint8Array, position: number, length: number): void => {
  bytes[position] = 0
  bytes[position + 1] = length >>> 24
  bytes[position + 2] = length >>> 16
  bytes[position + 3] = length >>> 8
  bytes[position + 4] = length
}

/** Bytes of a message from which on its parts are joined as they come. */
const large = 64 * 1024

/** Memory is made for so many times what has come, and for no more than the message. */
const ahead = 64

export class MessageReader {
  readonly #limits: MessageLimits
  /** What `next` has found: the message stands in `bytes` from `start` to `end`. */
  bytes = noBytes
  start = 0
  end = 0
  /** Why there will be no further message. */
  failure: GrpcStatus | undefined
  /** What is being read, and how far it is. */
  #chunk = noBytes
  #offset = 0
  /** Of a message that is not whole, with its prefix; and bytes of them. */
  #parts: Array<Uint8Array> = []
  #received = 0
  /** Of a large one, in their place: memory with all that was received, to which more is added. */
  #joined: Uint8Array | undefined
  /** Of such a message, with its prefix; unknown until the prefix is there. */
  #expected: number | undefined
  /** Taken from the budget for the parts. */
  #held = 0

  constructor(limits: MessageLimits) {
    this.#limits = limits
  }

  /** What comes behind all that came before, which must have been read to its end. */
  add(chunk: Uint8Array): void {
    this.#chunk = chunk
    this.#offset = 0
  }

  /** Whether there is another message. */
  next(): boolean {
    if (this.failure !== undefined) return false
    if (this.#received > 0) return this.#join()
    const chunk = this.#chunk
    const start = this.#offset + prefixLength
    if (start > chunk.length) return this.#keepRest()
    const length = this.#readPrefix(chunk, this.#offset)
    if (length === undefined) return false
    if (start + length > chunk.length) {
      this.#expected = prefixLength + length
      return this.#keepRest()
    }
    this.bytes = chunk
    this.start = start
    this.end = this.#offset = start + length
    return true
  }

  /** Nothing came behind the last message. */
  get isBetween(): boolean {
    return this.#received === 0 && this.#offset === this.#chunk.length
  }

  /** How much of a message has come, for error texts. */
  get progress(): string {
    return `${this.#received} bytes with its prefix, expected ${this.#expected ?? `at least ${prefixLength}`}`
  }

  /** Keeps nothing any more. To be called at the end, whatever it was. */
  release(): void {
    this.#parts = []
    this.#joined = undefined
    this.#received = 0
    this.#expected = undefined
    this.#chunk = noBytes
    this.#offset = 0
    this.#limits.receiveBudget.give(this.#held)
    this.#held = 0
  }

  /** A message of which parts are kept. */
  #join(): boolean {
    if (this.#expected === undefined) {
      if (!this.#take(prefixLength) || this.#received < prefixLength) return false
      const length = this.#readPrefix(Buffer.concat(this.#parts), 0)
      if (length === undefined) return false
      this.#expected = prefixLength + length
    }
    const expected = this.#expected
    const last = this.#part(expected)
    if (this.#received + last.length < expected) {
      if (last.length > 0) this.#keep(last)
      return false
    }
    this.bytes = this.#add(last) ? (this.#joined ?? last) : joined([...this.#parts, last], expected)
    this.start = prefixLength
    this.end = expected
    const [chunk, offset] = [this.#chunk, this.#offset]
    this.release()
    this.#chunk = chunk
    this.#offset = offset
    return true
  }

  /** Keeps what is there of the first so many bytes. False where it may not. */
  #take(length: number): boolean {
    const part = this.#part(length)
    return part.length === 0 || this.#keep(part)
  }

  /** What is there of the first so many bytes of the message, beside what is kept. */
  #part(length: number): Uint8Array {
    const from = this.#offset
    this.#offset = Math.min(this.#chunk.length, from + length - this.#received)
    return this.#chunk.subarray(from, this.#offset)
  }

  #keepRest(): false {
    if (this.#offset < this.#chunk.length) this.#keep(this.#part(Infinity))
    return false
  }

  #keep(part: Uint8Array): boolean {
    if (this.#add(part)) return true
    const cost = part.length + chunkCost
    const message = this.#limits.receiveBudget.take(cost)
    if (message !== undefined) {
      this.failure = { code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "QueueFull" }
      return false
    }
    this.#held += cost
    this.#received += part.length
    this.#parts.push(part.length < part.buffer.byteLength * smallPart ? new Uint8Array(part) : part)
    return true
  }

  /** Adds a part to the memory of a large message. False where there is none, and parts are kept as they are. */
  #add(part: Uint8Array): boolean {
    const received = this.#received + part.length
    if ((this.#joined?.length ?? 0) < received && !this.#makeRoom(received)) return false
    this.#joined?.set(part, this.#received)
    this.#received = received
    return true
  }

  #makeRoom(received: number): boolean {
    const expected = this.#expected ?? 0
    const length = Math.min(expected, ahead * received)
    if (length < large || length < received || !this.#limits.receiveBudget.reserve(length)) return this.#keepJoined()
    const known = this.#joined === undefined ? this.#parts : [this.#joined.subarray(0, this.#received)]
    const room = joined(known, length, expected)
    if (this.#joined !== undefined) OwnMemory.free(this.#joined)
    this.#joined = room
    this.#parts = []
    this.#limits.receiveBudget.give(this.#held)
    this.#held = length
    return true
  }

  /** What is joined is a part from now on. */
  #keepJoined(): false {
    if (this.#joined !== undefined) this.#parts = [this.#joined.subarray(0, this.#received)]
    this.#joined = undefined
    return false
  }

  /** The length of the message whose prefix stands here; undefined where there is none that may be. */
  #readPrefix(bytes: Uint8Array, at: number): number | undefined {
    const flag = bytes[at] ?? 0
    const length = readLength(bytes, at)
    const { maxMessageSize } = this.#limits
    if (flag === 1) {
      const message = "received a compressed message, but no grpc-encoding says how to decompress it"
      this.failure = { code: GrpcCode.INTERNAL, message, tag: "MalformedRequest" }
    } else if (flag !== 0) {
      const message = `invalid compressed flag ${flag} of a message, expected 0 or 1`
      this.failure = { code: GrpcCode.INTERNAL, message, tag: "MalformedRequest" }
    } else if (length > maxMessageSize) {
      const message = `message too large: ${length} bytes, at most ${maxMessageSize}`
      this.failure = { code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "InvalidRequest" }
    } else return length
    return undefined
  }
}

const noBytes: Uint8Array = new Uint8Array(0)

/**
 * Memory that begins with these parts. The message that ends at `end` ends with its last raw tensor, which can be read where
 * it is if that is where an element may begin.
 */
const joined = (parts: ReadonlyArray<Uint8Array>, length: number, end = length): Uint8Array => {
  const bytes = OwnMemory.allocate(length, end)
  let offset = 0
  for (const part of parts) {
    bytes.set(part, offset)
    offset += part.length
  }
  return bytes
}
