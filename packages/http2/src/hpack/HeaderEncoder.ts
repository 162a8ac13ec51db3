/**
 * Encodes the header blocks of one direction of a connection (HPACK, RFC 7541). Fields that a connection repeats go
 * into the dynamic table. The blocks of templates, which are fields of many requests or responses, are encoded again
 * only after a change of the table.
 */
import { defaultTableSize, DynamicTable, sizeOf } from "./DynamicTable.ts"
import type { FieldList } from "./HeaderDecoder.ts"
import * as HuffmanCode from "./HuffmanCode.ts"
import { staticTable } from "./StaticTable.ts"

/** Fields that are the same in many blocks of a connection. */
export class HeaderTemplate {
  readonly fields: FieldList

  /** Names in lower case, pseudo-headers first. The values are Latin-1. */
  constructor(fields: FieldList) {
    this.fields = fields
  }
}

interface EncodedTemplate {
  readonly template: HeaderTemplate
  readonly version: number
  readonly block: Uint8Array
}

/** The first entry of each name: later ones are overwritten. */
const staticNames: ReadonlyMap<string, number> = new Map(
  staticTable.map(({ name }, index) => [name, index + 1] as const).toReversed(),
)

const staticFields: ReadonlyMap<string, number> = new Map(
  staticTable.flatMap(({ name, value }, index) => (value === "" ? [] : [[`${name}\n${value}`, index + 1] as const])),
)

/** Templates of a connection whose blocks are kept: heads and trailers of a few kinds. */
const maxTemplates = 8

export class HeaderEncoder {
  readonly #table = new DynamicTable()
  /** The latest first. An array is smaller than a map, and as fast for so few. */
  #templates: ReadonlyArray<EncodedTemplate> = []
  /** Sizes that the next block must announce: the smallest one since the last block, and the current one. */
  #announced: { smallest: number; last: number } | undefined

  /** Applies SETTINGS_HEADER_TABLE_SIZE of the peer. The table does not become larger than the default. */
  limit(bytes: number): void {
    const size = Math.min(bytes, defaultTableSize)
    if (size === this.#table.maxSize && this.#announced === undefined) return
    this.#table.resize(size)
    this.#announced = { smallest: Math.min(size, this.#announced?.smallest ?? size), last: size }
  }

  /** The next block of the connection: the fields of a template, and further ones. Valid until the next call. */
  encode(template: HeaderTemplate | undefined, fields: FieldList = none): Uint8Array {
    const known = template === undefined ? undefined : this.#known(template)
    if (known !== undefined && known.version === this.#table.version && this.#announced === undefined) {
      if (fields.length === 0) return known.block
      return concat(known.block, this.#block(fields, false))
    }
    if (template === undefined) return this.#block(fields, false)
    const isAnnouncing = this.#announced !== undefined
    const before = this.#table.version
    let block = this.#block(template.fields, true)
    // A block that has changed the table is literal; the next one consists of indices.
    if (!isAnnouncing && this.#table.version === before) {
      // Without the memory for literals.
      block = block.slice()
      const others = this.#templates.filter((other) => other.template !== template).slice(0, maxTemplates - 1)
      this.#templates = [{ template, version: before, block }, ...others]
    }
    return fields.length === 0 ? block : concat(block, this.#block(fields, false))
  }

  #known(template: HeaderTemplate): EncodedTemplate | undefined {
    const templates = this.#templates
    for (let index = 0; index < templates.length; index++) {
      const known = templates[index]
      if (known?.template === template) return known
    }
    return undefined
  }

  #block(fields: FieldList, isRepeated: boolean): Uint8Array {
    const writer = new BlockWriter(fields)
    const announced = this.#announced
    this.#announced = undefined
    if (announced !== undefined) {
      if (announced.smallest < announced.last) writer.integer(0x20, 5, announced.smallest)
      writer.integer(0x20, 5, announced.last)
    }
    for (let index = 0; index < fields.length; index += 2) {
      this.#field(writer, fields[index] ?? "", fields[index + 1] ?? "", isRepeated)
    }
    return writer.bytes
  }

  #field(writer: BlockWriter, name: string, value: string, isRepeated: boolean): void {
    const known = staticFields.get(`${name}\n${value}`) ?? this.#table.indexOf(name, value)
    if (known !== undefined) return writer.integer(0x80, 7, known)
    const field = { name, value }
    // Never so much that adding one entry evicts another one of the same template.
    const isAdded = isRepeated && this.#table.size + sizeOf(field) <= this.#table.maxSize
    const index = staticNames.get(name) ?? 0
    if (isAdded) writer.integer(0x40, 6, index)
    else writer.integer(neverIndexed.has(name) ? 0x10 : 0, 4, index)
    if (index === 0) writer.text(name)
    writer.text(value)
    if (isAdded) this.#table.add(field)
  }
}

/** Fields that no proxy is to put into a table (RFC 7541, 7.1.3). */
const neverIndexed: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization", "set-cookie"])

const none: FieldList = []

const impossible = /[\0\r\n\u0100-\uffff]/

const impossibleOnes = new RegExp(impossible, "g")

const concat = (one: Uint8Array, other: Uint8Array): Uint8Array => {
  const joined = new Uint8Array(one.length + other.length)
  joined.set(one)
  joined.set(other, one.length)
  return joined
}

class BlockWriter {
  readonly #bytes: Uint8Array
  #position = 0

  /** Has room for the fields as literals, and for two changes of the table's size. */
  constructor(fields: FieldList) {
    let room = 16
    for (const text of fields) room += text.length + 8
    this.#bytes = new Uint8Array(room)
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#position)
  }

  /** `kind` are the bits before it in its first byte. */
  integer(kind: number, bits: number, value: number): void {
    const maxPrefix = (1 << bits) - 1
    if (value < maxPrefix) {
      this.#bytes[this.#position++] = kind | value
      return
    }
    this.#bytes[this.#position++] = kind | maxPrefix
    let rest = value - maxPrefix
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[this.#position++] = (rest % 0x80) | 0x80
    this.#bytes[this.#position++] = rest
  }

  /** Characters that a field cannot have are replaced, because they would begin another line for an HTTP/1.1 proxy. */
  text(text: string): void {
    const value = impossible.test(text) ? text.replaceAll(impossibleOnes, "?") : text
    const encoded = HuffmanCode.encodedLength(value)
    if (encoded < value.length) {
      this.integer(0x80, 7, encoded)
      this.#position = HuffmanCode.encode(value, this.#bytes, this.#position)
      return
    }
    this.integer(0, 7, value.length)
    for (let index = 0; index < value.length; index++) this.#bytes[this.#position++] = value.charCodeAt(index)
  }
}
