/**
 * Decodes the header blocks of one direction of a connection (HPACK, RFC 7541). Most requests and responses repeat a
 * block. A block that was decoded before with the same table returns the result of that time, so callers can also
 * cache by identity. HeaderBlock.ts gives the fields their meaning.
 */
import * as HuffmanCode from "./HuffmanCode.ts"
import { defaultTableSize, DynamicTable } from "./DynamicTable.ts"
import type { HeaderField } from "./StaticTable.ts"

/** A block that cannot be decoded, after which no other block of the connection can be. */
export class HeaderError extends Error {}

/** Fields in order: a name, its value, the next name. */
export type FieldList = ReadonlyArray<string>

/** Blocks that are remembered: requests and trailers of a few kinds. */
const maxRemembered = 8

/** Longest block that is remembered, in bytes. Longer ones are literal, and cost more than their copy. */
const maxRememberedLength = 512

/** Most bytes of fields of a block that is remembered: a short block may refer to a large entry many times. */
export const maxRememberedSize = 8192

interface Remembered<A> {
  readonly block: Uint8Array
  readonly result: A
  readonly fields: FieldList
  readonly size: number
  /** The last field with a literal value that is not indexed; undefined without one. */
  readonly literal: Literal | undefined
}

/** Where a block has the value of a field, and its index in the fields. */
interface Literal {
  readonly start: number
  readonly end: number
  readonly index: number
}

/** A result whose fields are the same except for the value at `index`. */
export interface Similar<A> {
  readonly result: A
  readonly index: number
}

/** `A` is what `read` makes of the fields. */
export class HeaderDecoder<A> {
  readonly #read: (fields: FieldList, isTooLarge: boolean, similar?: Similar<A>) => A
  readonly #maxListSize: number
  readonly #table = new DynamicTable()
  /** Blocks that were decoded since the table changed, and did not change it themselves; the latest first. */
  #remembered: Array<Remembered<A>> = []
  #version = 0
  /** The fields, their size, and the literal of the block that was decoded last. */
  #fields: FieldList = []
  #size = 0
  #literal: Literal | undefined
  /** The value in which the last block that was similar to a remembered one differed. */
  #lastValue = ""

  /**
   * `read` receives the fields up to `maxListSize` bytes, as SETTINGS_MAX_HEADER_LIST_SIZE counts them, and whether
   * there were more. Its result may be returned for several blocks. `similar` is a result for nearly the same fields,
   * if one is known.
   */
  constructor(maxListSize: number, read: (fields: FieldList, isTooLarge: boolean, similar?: Similar<A>) => A) {
    this.#maxListSize = maxListSize
    this.#read = read
  }

  /** @throws HeaderError */
  decode(block: Uint8Array): A {
    const remembered = this.#remembered
    for (let index = 0; index < remembered.length; index++) {
      const known = remembered[index]
      if (known === undefined || !equal(known.block, block)) continue
      if (index > 0) {
        remembered.splice(index, 1)
        remembered.unshift(known)
      }
      return known.result
    }
    for (let index = 0; index < remembered.length; index++) {
      const known = remembered[index]
      const result = known && this.#decodeSimilar(block, known)
      if (result !== undefined) return result
    }
    const result = this.#decode(block)
    if (this.#table.version !== this.#version) {
      this.#version = this.#table.version
      this.#remembered = []
    } else this.#remember(block, result)
    return result
  }

  #remember(block: Uint8Array, result: A): void {
    if (block.length > maxRememberedLength || this.#size > maxRememberedSize) return
    const latest = {
      block: new Uint8Array(block),
      result,
      fields: this.#fields,
      size: this.#size,
      literal: this.#literal,
    }
    // Without the room for further elements that V8 adds to an array that grows.
    this.#remembered = [latest, ...this.#remembered.slice(0, maxRemembered - 1)]
  }

  /**
   * Decodes a block that differs from a known one in the value of its literal alone, such as a timeout. Undefined if it
   * differs in more. A value that comes again is remembered.
   */
  #decodeSimilar(block: Uint8Array, { block: known, result, fields, size, literal }: Remembered<A>): A | undefined {
    if (literal === undefined || block.length <= literal.start || block.length > maxRememberedLength) return undefined
    if (!equalUntil(known, block, literal.start)) return undefined
    const cursor = { block, position: literal.start }
    const value = text(cursor)
    const { index, end } = literal
    if (!equalFrom(known, end, block, cursor.position)) return undefined
    const newSize = size + value.length - (fields[index]?.length ?? 0)
    if (newSize > this.#maxListSize) return undefined
    this.#fields = fields.with(index, value)
    this.#size = newSize
    this.#literal = { start: literal.start, end: cursor.position, index }
    const similar = this.#read(this.#fields, false, { result, index })
    if (value === this.#lastValue) this.#remember(block, similar)
    this.#lastValue = value
    return similar
  }

  #decode(block: Uint8Array): A {
    const fields: Array<string> = []
    const cursor = { block, position: 0 }
    let size = 0
    let mayResize = true
    this.#literal = undefined
    while (cursor.position < block.length) {
      const first = block[cursor.position] ?? 0
      if ((first & 0xe0) === 0x20) {
        if (!mayResize) throw new HeaderError("a change of the table's size follows a header field")
        this.#resize(integer(cursor, 5))
        continue
      }
      mayResize = false
      const field =
        (first & 0x80) !== 0 ? this.#field(integer(cursor, 7)) : this.#literalField(cursor, first, fields.length + 1)
      size += field.name.length + field.value.length + 32
      // A field beyond the limit changes the table, but is not kept: a block may refer to a large entry many times.
      if (size <= this.#maxListSize) fields.push(field.name, field.value)
    }
    this.#size = size
    this.#fields = fields.slice()
    const isTooLarge = size > this.#maxListSize
    if (isTooLarge) this.#literal = undefined
    return this.#read(this.#fields, isTooLarge)
  }

  /** `at` is the index that its value will have in the fields. */
  #literalField(cursor: Cursor, first: number, at: number): HeaderField {
    const isIndexed = (first & 0xc0) === 0x40
    const index = integer(cursor, isIndexed ? 6 : 4)
    const name = index === 0 ? text(cursor) : this.#field(index).name
    const start = cursor.position
    const field = { name, value: text(cursor) }
    if (isIndexed) this.#table.add(field)
    else this.#literal = { start, end: cursor.position, index: at }
    return field
  }

  #resize(size: number): void {
    if (size > defaultTableSize) {
      throw new HeaderError(`the header table has ${size} bytes, at most ${defaultTableSize} are allowed`)
    }
    this.#table.resize(size)
  }

  #field(index: number): HeaderField {
    const field = this.#table.at(index)
    if (field === undefined) throw new HeaderError(`unknown header index ${index}`)
    return field
  }
}

const equal = (one: Uint8Array, other: Uint8Array): boolean => {
  const { length } = one
  if (length !== other.length) return false
  for (let index = 0; index < length; index++) if (one[index] !== other[index]) return false
  return true
}

/** Whether the first bytes are equal. Both blocks have as many. */
const equalUntil = (one: Uint8Array, other: Uint8Array, end: number): boolean => {
  for (let index = 0; index < end; index++) if (one[index] !== other[index]) return false
  return true
}

/** Whether the bytes from these offsets on are equal. */
const equalFrom = (one: Uint8Array, start: number, other: Uint8Array, otherStart: number): boolean => {
  const length = one.length - start
  if (other.length - otherStart !== length) return false
  for (let index = 0; index < length; index++) if (one[start + index] !== other[otherStart + index]) return false
  return true
}

interface Cursor {
  readonly block: Uint8Array
  position: number
}

const nextByte = (cursor: Cursor): number => {
  const value = cursor.block[cursor.position++]
  if (value === undefined) throw new HeaderError("a header field ends after its block")
  return value
}

/** An integer whose first bits are the last ones of a byte (RFC 7541, 5.1). */
const integer = (cursor: Cursor, bits: number): number => {
  const maxPrefix = (1 << bits) - 1
  let value = nextByte(cursor) & maxPrefix
  if (value < maxPrefix) return value
  for (let factor = 1; factor <= 2 ** 21; factor *= 0x80) {
    const next = nextByte(cursor)
    value += (next & 0x7f) * factor
    if (next < 0x80) return value
  }
  throw new HeaderError("a header integer has more than 4 bytes")
}

/** A text, as Latin-1 (RFC 7541, 5.2). */
const text = (cursor: Cursor): string => {
  const { block } = cursor
  const isHuffman = ((block[cursor.position] ?? 0) & 0x80) !== 0
  const length = integer(cursor, 7)
  const start = cursor.position
  const end = start + length
  if (end > block.length) throw new HeaderError("a header text ends after its block")
  cursor.position = end
  const decoded = isHuffman ? HuffmanCode.decode(block, start, end) : latin1(block, start, end)
  if (decoded === undefined) throw new HeaderError("a header text is not valid Huffman code")
  return decoded
}

const latin1 = (bytes: Uint8Array, start: number, end: number): string => {
  if (end - start > 64) {
    return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1")
  }
  let result = ""
  for (let index = start; index < end; index++) result += String.fromCharCode(bytes[index] ?? 0)
  return result
}
