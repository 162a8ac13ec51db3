/**
 * Decodes HTTP/2 header blocks (HPACK, RFC 7541), with a dynamic table. Most replies of a server repeat a header block.
 * A block that was decoded before, with the same table, returns the same object, so callers can cache by identity.
 */
import { defaults } from "./Frame.ts"
import * as HuffmanCode from "./HuffmanCode.ts"
import { type HeaderField, staticTable } from "./StaticTable.ts"

/** Names in lower case; values of a name that comes more than once have `, ` between them. */
export type Headers = ReadonlyMap<string, string>

/** A block that cannot be read, after which no other can be. */
export class HeaderError extends Error {}

interface Known {
  readonly block: Buffer
  readonly headers: Headers
}

/** The head and the end of a reply, and some that differ. */
const remembered = 8

export class HeaderReader {
  /** Dynamic table of the server, the newest entry last. */
  readonly #table: Array<HeaderField> = []
  #size = 0
  #limit: number = defaults.headerTable
  /** Blocks that were read since the table changed last, and left it alone themselves. */
  readonly #known: Array<Known> = []
  #changed = false

  /** @throws HeaderError */
  read(block: Buffer): Headers {
    for (const known of this.#known) if (known.block.equals(block)) return known.headers
    this.#changed = false
    const headers = this.#decode(block)
    if (this.#changed) this.#known.length = 0
    else {
      if (this.#known.length === remembered) this.#known.shift()
      this.#known.push({ block: Buffer.from(block), headers })
    }
    return headers
  }

  #decode(block: Buffer): Headers {
    const headers = new Map<string, string>()
    const cursor = { block, offset: 0 }
    while (cursor.offset < block.length) {
      const first = block[cursor.offset] ?? 0
      if ((first & 0xe0) === 0x20) {
        this.#resize(integer(cursor, 5))
        continue
      }
      const { name, value } = (first & 0x80) !== 0 ? this.#field(integer(cursor, 7)) : this.#literal(cursor, first)
      const before = headers.get(name)
      headers.set(name, before === undefined ? value : `${before}, ${value}`)
    }
    return headers
  }

  #literal(cursor: Cursor, first: number): HeaderField {
    const indexing = (first & 0xc0) === 0x40
    const index = integer(cursor, indexing ? 6 : 4)
    const name = index === 0 ? text(cursor) : this.#field(index).name
    const field = { name, value: text(cursor) }
    if (indexing) {
      this.#changed = true
      this.#table.push(field)
      this.#size += sizeOf(field)
      this.#evict()
    }
    return field
  }

  #resize(limit: number): void {
    if (limit > defaults.headerTable) {
      throw new HeaderError(`the header table has ${limit} bytes, at most ${defaults.headerTable} are allowed`)
    }
    this.#changed = true
    this.#limit = limit
    this.#evict()
  }

  #field(index: number): HeaderField {
    const field =
      index <= staticTable.length
        ? staticTable[index - 1]
        : this.#table[this.#table.length - (index - staticTable.length)]
    if (field === undefined) throw new HeaderError(`unknown header index ${index}`)
    return field
  }

  /** Also evicts the newest entry, if that alone exceeds the table (RFC 7541, 4.4). */
  #evict(): void {
    while (this.#size > this.#limit) {
      const oldest = this.#table.shift()
      this.#size -= oldest === undefined ? this.#size : sizeOf(oldest)
    }
  }
}

interface Cursor {
  readonly block: Buffer
  offset: number
}

/** RFC 7541, 4.1. */
const sizeOf = ({ name, value }: HeaderField): number => name.length + value.length + 32

/** An integer whose first bits are the last ones of a byte (RFC 7541, 5.1). */
const integer = (cursor: Cursor, bits: number): number => {
  const maxPrefix = (1 << bits) - 1
  let value = byte(cursor) & maxPrefix
  if (value < maxPrefix) return value
  for (let factor = 1; factor <= 2 ** 21; factor *= 0x80) {
    const next = byte(cursor)
    value += (next & 0x7f) * factor
    if (next < 0x80) return value
  }
  throw new HeaderError("a header integer has more than 4 bytes")
}

const text = (cursor: Cursor): string => {
  const huffman = ((cursor.block[cursor.offset] ?? 0) & 0x80) !== 0
  const length = integer(cursor, 7)
  const bytes = cursor.block.subarray(cursor.offset, cursor.offset + length)
  if (bytes.length < length) throw new HeaderError("a header text ends after its block")
  cursor.offset += length
  const decoded = huffman ? HuffmanCode.decode(bytes) : bytes.toString("latin1")
  if (decoded === undefined) throw new HeaderError("a header text is not valid Huffman code")
  return decoded
}

const byte = (cursor: Cursor): number => {
  const value = cursor.block[cursor.offset++]
  if (value === undefined) throw new HeaderError("a header field ends after its block")
  return value
}
