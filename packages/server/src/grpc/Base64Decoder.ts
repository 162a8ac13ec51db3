/** Decodes base64 that arrives in pieces, cut anywhere. Padding may end any group of four characters. */
export class Base64Decoder {
  /** Up to three characters of a group that is not complete. */
  #rest = ""

  /** Returns the bytes of all groups that are complete; undefined for what is not base64. */
  decode(chunk: Uint8Array): Uint8Array | undefined {
    const text = this.#rest + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1")
    const end = text.length - (text.length % 4)
    this.#rest = text.slice(end)
    const groups = text.slice(0, end)
    if (!valid.test(groups)) return undefined
    if (!groups.includes("=")) return Buffer.from(groups, "base64")
    // Node's decoder would end at the first padding.
    return Buffer.concat(groups.split(behindPadding).map((part) => Buffer.from(part, "base64")))
  }

  /** Whether everything that arrived is decoded. */
  get isComplete(): boolean {
    return this.#rest === ""
  }
}

const valid = /^(?:[A-Za-z\d+/]{4}|[A-Za-z\d+/]{3}=|[A-Za-z\d+/]{2}==)*$/

const behindPadding = /(?<==)(?!=)/
