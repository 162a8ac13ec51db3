/**
 * Reads the messages of a gRPC response from chunks with arbitrary boundaries. A message within one chunk is a view on
 * it, wherever its prefix was; a message in several chunks is joined in separate memory. Of other chunks, nothing is
 * kept. Servers read requests with another reader, which shares a memory budget between all calls.
 *
 *   add(chunk) ─► next() ─┬─ true: `bytes` holds a message from `start` to `end`; call next() again
 *                         └─ false: add the next chunk, unless `refusal` is set
 */
import { compressedFlag, messageLength, prefixLength } from "./GrpcFrame.ts"

/** Why no further message can be read. `length` is the announced length of the message that is too large. */
export type MessageRefusal = "compressed" | "too large"

export class ResponseMessageReader<B extends Uint8Array> {
  /** The message that `next` found is in `bytes` from `start` to `end`, until the next call of `next`. */
  bytes: B
  start = 0
  end = 0
  /** Length of the current message in bytes; larger than `end - start` if only its beginning was kept. */
  length = 0
  refusal: MessageRefusal | undefined
  readonly #limit: number
  readonly #kept: number
  readonly #allocate: (length: number) => B
  readonly #empty: B
  #chunk: B
  #offset = 0
  /** Holds a prefix that arrives in parts. */
  #prefix: Uint8Array | undefined
  /** Holds a message that arrives in parts. */
  #joined: B | undefined
  /** Bytes of the current frame that have arrived, with its prefix; 0 between messages. */
  #received = 0

  /**
   * Refuses messages of more than `limit` bytes. Of a message that arrives in parts, only the first `kept` bytes are
   * kept (default all), so that a load generator can measure large responses without copying them. `allocate` returns
   * memory of a given size with any content.
   */
  constructor(limit: number, allocate: (length: number) => B, kept = limit) {
    this.#limit = limit
    this.#kept = kept
    this.#allocate = allocate
    this.bytes = this.#chunk = this.#empty = allocate(0)
  }

  /** Adds a chunk. `next` must have returned false for the previous one. */
  add(chunk: B): void {
    this.#chunk = chunk
    this.#offset = 0
  }

  /** Finds the next message. Returns false if it has not arrived completely, or is refused. */
  next(): boolean {
    if (this.refusal !== undefined) return false
    const chunk = this.#chunk
    if (this.#joined === undefined) {
      if (!this.#readPrefix()) return this.#wait()
      const start = this.#offset
      const end = start + this.length
      if (end <= chunk.length) {
        this.#offset = end
        return this.#found(chunk, start, end)
      }
      this.#joined = this.#allocate(Math.min(this.#kept, this.length))
    }
    const joined = this.#joined
    const position = this.#received - prefixLength
    const part = Math.min(this.length - position, chunk.length - this.#offset)
    const kept = Math.min(part, joined.length - position)
    // A subarray costs about as much as copying a few hundred bytes.
    if (kept === chunk.length) joined.set(chunk, position)
    else if (kept > 0) joined.set(chunk.subarray(this.#offset, this.#offset + kept), position)
    this.#received += part
    this.#offset += part
    return position + part < this.length ? this.#wait() : this.#found(joined, 0, joined.length)
  }

  /** Whether the chunks so far end exactly behind a message. */
  get isBetween(): boolean {
    return this.#received === 0 && this.#offset === this.#chunk.length
  }

  /** Bytes of an incomplete message that have arrived, without the prefix. */
  get received(): number {
    return Math.max(0, this.#received - prefixLength)
  }

  /** Reads the prefix of the next message. Returns false if it is incomplete, or the message is refused. */
  #readPrefix(): boolean {
    const chunk = this.#chunk
    if (this.#received === 0 && this.#offset + prefixLength <= chunk.length) {
      const position = this.#offset
      this.#received = prefixLength
      this.#offset += prefixLength
      return this.#accepts(chunk, position)
    }
    const prefix = (this.#prefix ??= new Uint8Array(prefixLength))
    while (this.#received < prefixLength && this.#offset < chunk.length) {
      prefix[this.#received++] = chunk[this.#offset++] ?? 0
    }
    return this.#received === prefixLength && this.#accepts(prefix, 0)
  }

  #accepts(bytes: Uint8Array, position: number): boolean {
    this.length = messageLength(bytes, position)
    if (compressedFlag(bytes, position) !== 0) this.refusal = "compressed"
    else if (this.length > this.#limit) this.refusal = "too large"
    return this.refusal === undefined
  }

  #found(bytes: B, start: number, end: number): true {
    this.bytes = bytes
    this.start = start
    this.end = end
    this.#joined = undefined
    this.#received = 0
    return true
  }

  /** Drops the references to the chunk and to the last message. */
  #wait(): false {
    this.bytes = this.#chunk = this.#empty
    this.#offset = 0
    return false
  }
}
