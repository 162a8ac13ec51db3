/**
 * The messages of a gRPC reply, put together from the parts that come. Of a message beyond `kept` bytes only its beginning
 * is, so that reading a load's large replies costs no copies of them.
 */

/** Bytes before a message: whether it is compressed, and its length. */
export const prefixLength = 5

/** `beginning` is the whole message unless that has more than `kept` bytes; a view that does not outlive the call. */
export type OnMessage = (beginning: Buffer, length: number) => void

const none = Buffer.alloc(0)

export class MessageReader {
  readonly #kept: number
  readonly #onMessage: OnMessage
  /** Of a prefix or a message that is not all there. */
  #part: Buffer = none
  /** Of the message that is being read; undefined between messages. */
  #length: number | undefined
  /** Bytes of it that have come. */
  #filled = 0

  constructor(kept: number, onMessage: OnMessage) {
    this.#kept = kept
    this.#onMessage = onMessage
  }

  /** What is wrong with what has come, if anything; then nothing more can be read. */
  read(chunk: Buffer): string | undefined {
    for (let rest = chunk; ;) {
      if (this.#length === undefined) {
        const bytes: Buffer = this.#part.length === 0 ? rest : Buffer.concat([this.#part, rest])
        if (bytes.length < prefixLength) {
          this.#part = Buffer.from(bytes)
          return undefined
        }
        if (bytes[0] !== 0) return "a compressed message, which was not asked for"
        this.#length = bytes.readUInt32BE(1)
        this.#filled = 0
        rest = bytes.subarray(prefixLength)
        this.#part = this.#length > rest.length ? Buffer.allocUnsafe(Math.min(this.#kept, this.#length)) : none
      }
      const length = this.#length
      const taken = rest.subarray(0, length - this.#filled)
      if (this.#filled < this.#part.length) taken.copy(this.#part, this.#filled)
      this.#filled += taken.length
      if (this.#filled < length) return undefined
      const beginning = taken.length === length ? taken : this.#part
      this.#part = none
      this.#length = undefined
      this.#onMessage(beginning, length)
      rest = rest.subarray(taken.length)
      if (rest.length === 0) return undefined
    }
  }

  /** Whether the end of the reply would cut a message. */
  get midway(): boolean {
    return this.#length !== undefined || this.#part.length > 0
  }
}
