/**
 * Reads the replies of a Redis server, in its protocol RESP 2, as far as GET, SET and the commands of a connection need
 * it: https://redis.io/docs/latest/develop/reference/protocol-spec/
 */

/** A reply: a value, no value, a status, or an error. */
export type Reply =
  | { readonly kind: "value"; readonly bytes: Uint8Array }
  | { readonly kind: "none" }
  | { readonly kind: "status"; readonly text: string }
  | { readonly kind: "error"; readonly text: string }

/** Maximum length of the first line of a reply, in bytes. */
const maxLineBytes = 4096

export class RedisReplies {
  readonly #maxValueBytes: number
  readonly #onReply: (reply: Reply) => void
  #buffer: Buffer = Buffer.alloc(0)
  /** Parts of a value that has not arrived completely, and how many bytes of it and its line end are missing. */
  #parts: Array<Buffer> = []
  #missing = 0

  constructor(maxValueBytes: number, onReply: (reply: Reply) => void) {
    this.#maxValueBytes = maxValueBytes
    this.#onReply = onReply
  }

  /** @throws Error if the bytes are no reply of the protocol, or a value is too large */
  push(chunk: Buffer): void {
    let rest = chunk
    while (rest.length > 0) {
      if (this.#missing > 0) {
        const part = rest.subarray(0, this.#missing)
        this.#parts.push(part)
        this.#missing -= part.length
        rest = rest.subarray(part.length)
        if (this.#missing > 0) return
        const value = Buffer.concat(this.#parts)
        this.#parts = []
        this.#onReply({ kind: "value", bytes: value.subarray(0, -2) })
        continue
      }
      const line = this.#buffer.length === 0 ? rest : Buffer.concat([this.#buffer, rest])
      const end = line.indexOf("\r\n")
      if (end < 0) {
        if (line.length > maxLineBytes) throw new Error("a line of a reply is too long")
        this.#buffer = line
        return
      }
      this.#buffer = Buffer.alloc(0)
      rest = line.subarray(end + 2)
      this.#line(line.toString("latin1", 0, end))
    }
  }

  #line(line: string): void {
    const text = line.slice(1)
    switch (line[0]) {
      case "+":
      case ":":
        return this.#onReply({ kind: "status", text })
      case "-":
        return this.#onReply({ kind: "error", text })
      case "$": {
        if (text === "-1") return this.#onReply({ kind: "none" })
        const length = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN
        if (!(length <= this.#maxValueBytes)) throw new Error(`a value has ${text} bytes`)
        this.#missing = length + 2
        return
      }
      default:
        throw new Error(`unexpected reply ${JSON.stringify(line.slice(0, 40))}`)
    }
  }
}
