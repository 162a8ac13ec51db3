/**
 * Encodes the header block of requests with equal headers (HPACK, RFC 7541). The first block is literal and adds to the
 * dynamic table; later blocks are table indices. Without Huffman coding.
 */
import { defaults } from "./Frame.ts"
import { staticTable } from "./StaticTable.ts"

/** Header fields in order, pseudo-headers first. Names in lower case. */
export type HeaderFields = ReadonlyArray<readonly [name: string, value: string]>

/** Encoder of one connection, which has a separate dynamic table. */
export class HeaderWriter {
  readonly #fields: HeaderFields
  readonly #references: Buffer
  /** State of the fields in the server's table: not yet added, added, or table not used. */
  #memory: "empty" | "full" | "none"
  /** Whether the next block must announce a smaller table. */
  #owesUpdate = false

  constructor(fields: HeaderFields) {
    this.#fields = fields
    this.#references = Buffer.concat(
      fields.map((_, position) => integer(0x80, 7, staticTable.length + fields.length - position)),
    )
    this.#memory = fields.reduce((sum, field) => sum + sizeOf(field), 0) > defaults.headerTable ? "none" : "empty"
  }

  /** Sets the server's maximum table size, in bytes. A reduction must be announced in the next block. */
  limit(bytes: number): void {
    if (bytes >= defaults.headerTable) return
    this.#memory = "none"
    this.#owesUpdate = true
  }

  /**
   * The next block of the connection; with other fields, of a request that the server is not to remember. `added`
   * follows the fields.
   */
  block(other?: HeaderFields, added?: HeaderFields): Buffer {
    const block = this.#block(other)
    return added === undefined ? block : Buffer.concat([block, literals(0, added)])
  }

  #block(other: HeaderFields | undefined): Buffer {
    if (this.#owesUpdate) {
      this.#owesUpdate = false
      // A table of 0 bytes is within any limit of the server.
      return Buffer.concat([integer(0x20, 5, 0), literals(0, other ?? this.#fields)])
    }
    if (other !== undefined || this.#memory === "none") return literals(0, other ?? this.#fields)
    if (this.#memory === "full") return this.#references
    this.#memory = "full"
    return literals(0x40, this.#fields)
  }
}

/** RFC 7541, 4.1. */
const sizeOf = ([name, value]: HeaderFields[number]): number => Buffer.byteLength(name) + Buffer.byteLength(value) + 32

/** Encodes each field as a literal; `kind` selects whether it is added to the table. */
const literals = (kind: number, fields: HeaderFields): Buffer =>
  Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(kind), text(name), text(value)]))

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  return Buffer.concat([integer(0, 7, bytes.length), bytes])
}

/** `kind` are the bits before it in its first byte. */
const integer = (kind: number, bits: number, value: number): Buffer => {
  const maxPrefix = (1 << bits) - 1
  if (value < maxPrefix) return Buffer.of(kind | value)
  const bytes = [kind | maxPrefix]
  let rest = value - maxPrefix
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return Buffer.from(bytes)
}
