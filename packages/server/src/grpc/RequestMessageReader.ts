/**
 * Reads the messages of a request from chunks that may be cut anywhere. A message within one chunk is not copied. Parts
 * of a message are kept within the memory budget of the server, and joined in separate memory. Parts of a large
 * message are joined as they arrive, while they are in the processor's cache. ReceiveTimeout.ts limits the time of a
 * message.
 */
import { InvalidRequest, MalformedRequest } from "@nereid/core/Errors"
import { compressedFlag, messageLength, prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import * as CallStatus from "./CallStatus.ts"
import { ReceivedMemory } from "../memory/ReceivedMemory.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"

export interface MessageLimits {
  /** Largest message in bytes. */
  readonly maxMessageSize: number
}

/** Overhead of a kept chunk, in bytes. With it, the budget also limits chunks of single bytes. */
const chunkCost = 256

/**
 * A chunk is a view on all that was read from its socket. A part below this share of that is copied, to free the rest.
 */
const smallPart = 1 / 8

/** Bytes of a message whose parts are joined as they arrive. */
const large = 64 * 1024

/** Memory is allocated for this many times the bytes that have arrived, up to the size of the message. */
const allocationFactor = 64

export class RequestMessageReader {
  readonly #limits: MessageLimits
  readonly #memory: HeldMemory
  /** The message that `next` found is in `bytes` from `start` to `end`. */
  bytes = noBytes
  start = 0
  end = 0
  /** Memory of that message, if it arrived in parts. */
  memory: ReceivedMemory | undefined
  /** Why no further message can be read. */
  failure: CallStatus.CallStatus | undefined
  /** The current chunk, and how much of it has been read; no bytes once that is all. */
  #chunk = noBytes
  #offset = 0
  /** Whether a message or part of one is a view on the current chunk. */
  #isViewed = false
  /** Parts of an incomplete message, with its prefix, and their total size. */
  #parts: Array<Uint8Array> = []
  #received = 0
  /** Replaces the parts for a large message: memory that holds all received bytes and takes further ones. */
  #joined: ReceivedMemory | undefined
  /** Size of the incomplete message with its prefix; undefined until the prefix has arrived. */
  #expected: number | undefined
  /** Bytes taken from the budget for the parts. */
  #reserved = 0

  /** `memory`: what the connection of the call holds. */
  constructor(limits: MessageLimits, memory: HeldMemory) {
    this.#limits = limits
    this.#memory = memory
  }

  /** Adds a chunk. `next` must have returned false for the previous one. */
  add(chunk: Uint8Array): void {
    this.#isViewed = false
    this.#chunk = chunk
    this.#offset = 0
  }

  /** Finds the next message. Returns false if it has not arrived completely, or is refused. */
  next(): boolean {
    if (this.failure !== undefined) return false
    if (this.#received > 0 ? this.#join() : this.#find()) return true
    if (this.#offset === this.#chunk.length) this.#drop()
    return false
  }

  /** Whether the chunk that was added last may still be read. */
  get keepsChunk(): boolean {
    return this.#isViewed || this.#offset < this.#chunk.length
  }

  /** Finds a message of which no part is kept. */
  #find(): boolean {
    const chunk = this.#chunk
    const start = this.#offset + prefixLength
    if (start > chunk.length) return this.#keepRest()
    const length = this.#readPrefix(chunk, this.#offset)
    if (length === undefined) return false
    if (start + length > chunk.length) {
      this.#expected = prefixLength + length
      return this.#keepRest()
    }
    this.#isViewed = true
    this.memory = undefined
    this.bytes = chunk
    this.start = start
    this.end = this.#offset = start + length
    return true
  }

  /** Whether the chunks so far end exactly behind a message. */
  get isBetween(): boolean {
    return this.#received === 0 && this.#offset === this.#chunk.length
  }

  /** Bytes of the incomplete message that have arrived, with its prefix. */
  get received(): number {
    return this.#received
  }

  /** How much of a message has arrived, for error texts. */
  get progress(): string {
    return `${this.#received} bytes including the prefix, expected ${this.#expected ?? `at least ${prefixLength}`}`
  }

  /** Frees all parts and their budget. Must be called at the end of every call. */
  release(): void {
    this.#parts = []
    this.#joined = undefined
    this.#received = 0
    this.#expected = undefined
    this.#drop()
    this.#memory.give(this.#reserved)
    this.#reserved = 0
  }

  #drop(): void {
    this.#chunk = noBytes
    this.#offset = 0
  }

  /** Continues a message of which parts are kept. */
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
    const isJoined = this.#add(last)
    const memory = (isJoined ? this.#joined : undefined) ?? joined([...this.#parts, last], expected)
    this.memory = memory
    this.bytes = memory.bytes
    this.start = prefixLength
    this.end = expected
    const [chunk, offset] = [this.#chunk, this.#offset]
    this.release()
    this.#chunk = chunk
    this.#offset = offset
    return true
  }

  /** Keeps what the chunk has of the first `length` bytes. Returns false if the budget does not allow it. */
  #take(length: number): boolean {
    const part = this.#part(length)
    return part.length === 0 || this.#keep(part)
  }

  /** Takes from the chunk what is missing of the first `length` bytes of the message. */
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
    const full = this.#memory.take(cost)
    if (full !== undefined) {
      this.failure = CallStatus.exhausted(full)
      return false
    }
    this.#reserved += cost
    this.#received += part.length
    const isSmall = part.length < part.buffer.byteLength * smallPart
    if (!isSmall) this.#isViewed = true
    this.#parts.push(isSmall ? new Uint8Array(part) : part)
    return true
  }

  /** Adds a part to the joined memory of a large message. Returns false if parts are kept as they are. */
  #add(part: Uint8Array): boolean {
    const received = this.#received + part.length
    if ((this.#joined?.bytes.length ?? 0) < received && !this.#makeRoom(received)) return false
    this.#joined?.bytes.set(part, this.#received)
    this.#received = received
    return true
  }

  #makeRoom(received: number): boolean {
    const expected = this.#expected ?? 0
    const length = Math.min(expected, allocationFactor * received)
    if (length < large || length < received || !this.#memory.reserve(length)) return this.#keepJoined()
    const before = this.#joined
    const known = before === undefined ? this.#parts : [before.bytes.subarray(0, this.#received)]
    this.#joined = joined(known, length, expected)
    before?.free()
    this.#parts = []
    this.#memory.give(this.#reserved)
    this.#reserved = length
    return true
  }

  /** Turns the joined memory into a part. */
  #keepJoined(): false {
    if (this.#joined !== undefined) this.#parts = [this.#joined.bytes.subarray(0, this.#received)]
    this.#joined = undefined
    return false
  }

  /** The length of the message whose prefix is at `at`; undefined, with `failure` set, if the message is refused. */
  #readPrefix(bytes: Uint8Array, at: number): number | undefined {
    const length = messageLength(bytes, at)
    this.failure = refusal(compressedFlag(bytes, at), length, this.#limits.maxMessageSize)
    return this.failure === undefined ? length : undefined
  }
}

const refusal = (flag: number, length: number, limit: number): CallStatus.CallStatus | undefined => {
  if (flag === 1) {
    const message = "received a compressed message without a grpc-encoding header"
    return CallStatus.fromError(new MalformedRequest({ message }))
  }
  if (flag !== 0) {
    const message = `invalid compressed flag ${flag} of a message, expected 0 or 1`
    return CallStatus.fromError(new MalformedRequest({ message }))
  }
  if (length <= limit) return undefined
  return CallStatus.exhausted(
    new InvalidRequest({ message: `Received message larger than max (${length} vs. ${limit})` }),
  )
}

const noBytes: Uint8Array = new Uint8Array(0)

/**
 * Memory of `length` bytes that begins with these parts. The message ends at `end` with its last raw tensor, which can
 * be read in place if its elements are aligned.
 */
const joined = (parts: ReadonlyArray<Uint8Array>, length: number, end = length): ReceivedMemory => {
  const memory = new ReceivedMemory(length, end)
  let offset = 0
  for (const part of parts) {
    memory.bytes.set(part, offset)
    offset += part.length
  }
  return memory
}
