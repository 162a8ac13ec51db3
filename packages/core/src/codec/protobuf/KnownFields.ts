/**
 * Checks the encoding of a protobuf message against its schema, because protobuf-es does not: it ignores wire types
 * and the ends of nested messages, and so reads some bytes as other values than the sender meant.
 *
 * As in Google's libraries, a field whose wire type does not fit is unknown, and ignored. Invalid bytes are an error.
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf"

/**
 * Returns the message without fields of wrong wire types: the given bytes if it has none, else a copy.
 * @throws Error if the bytes are not a valid message
 */
export const select = (schema: DescMessage, bytes: Uint8Array): Uint8Array =>
  new MessageWalk(bytes).select(fieldsOf(schema))

interface Field {
  readonly wire: number
  /** Whether its values may also come in one packed run. */
  readonly isPackable: boolean
  /** Fields of a nested message. */
  readonly fields: Fields | undefined
}

type Fields = ReadonlyMap<number, Field>

const wireTypes = { varint: 0, fixed64: 1, delimited: 2, group: 3, endGroup: 4, fixed32: 5 } as const

/** Messages and groups within each other, as in Google's libraries. */
const maxDepth = 100

/** Bytes of the longest varint, and of the longest tag or length. */
const maxVarint = 10
const maxTag = 5

/** A walk over the bytes of one message. It removes fields from a copy, which is made for the first of them. */
class MessageWalk {
  readonly #bytes: Uint8Array
  #position = 0
  #copy: Uint8Array | undefined
  /** Removed bytes. */
  #removed = 0
  /** End of the bytes that are in their place in the copy. */
  #moved = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  select(fields: Fields): Uint8Array {
    const { length } = this.#bytes
    this.#message(fields, length, 1)
    if (this.#copy === undefined) return this.#bytes
    this.#move(this.#copy, length)
    return this.#copy.subarray(0, length - this.#removed)
  }

  /** Walks to the end of a message. */
  #message(fields: Fields, end: number, depth: number): void {
    if (depth > maxDepth) this.#fail(`more than ${maxDepth} messages within each other`)
    while (this.#position < end) {
      const start = this.#position
      const tag = this.#tag(end)
      const wire = tag & 7
      const field = fields.get(tag >>> 3)
      if (field === undefined) this.#skip(tag, end, depth)
      else if (wire === field.wire && field.fields !== undefined) this.#nested(field.fields, end, depth)
      else if (wire === field.wire) this.#skip(tag, end, depth)
      else if (wire === wireTypes.delimited && field.isPackable) this.#run(field.wire, this.#end(end))
      else {
        this.#skip(tag, end, depth)
        this.#remove(start)
      }
    }
  }

  /** Over a nested message, behind its tag. */
  #nested(fields: Fields, limit: number, depth: number): void {
    const start = this.#position
    const removed = this.#removed
    const end = this.#end(limit)
    const content = this.#position
    this.#message(fields, end, depth + 1)
    if (this.#copy === undefined || this.#removed === removed) return
    // The new length takes as many bytes as the old one.
    let rest = end - content - (this.#removed - removed)
    for (let index = start; index < content; index++) {
      this.#copy[index - removed] = (rest & 0x7f) | (index < content - 1 ? 0x80 : 0)
      rest = Math.floor(rest / 0x80)
    }
  }

  /** Removes the bytes from `start` to the current position. */
  #remove(start: number): void {
    this.#copy ??= new Uint8Array(this.#bytes)
    this.#move(this.#copy, start)
    this.#moved = this.#position
    this.#removed += this.#position - start
  }

  /** Moves the bytes up to `end` to their place in the copy. */
  #move(copy: Uint8Array, end: number): void {
    copy.copyWithin(this.#moved - this.#removed, this.#moved, end)
    this.#moved = end
  }

  /** Over a field, behind its tag. */
  #skip(tag: number, end: number, depth: number): void {
    switch (tag & 7) {
      case wireTypes.varint:
        return this.#varint(end, maxVarint)
      case wireTypes.fixed64:
        return this.#advance(8, end)
      case wireTypes.fixed32:
        return this.#advance(4, end)
      case wireTypes.delimited:
        this.#position = this.#end(end)
        return
      case wireTypes.group:
        return this.#group(tag >>> 3, end, depth)
      default:
        this.#fail(`wire type ${tag & 7} of field ${tag >>> 3}`)
    }
  }

  #group(number: number, end: number, depth: number): void {
    if (depth > maxDepth) this.#fail(`more than ${maxDepth} groups within each other`)
    for (;;) {
      const tag = this.#tag(end)
      if ((tag & 7) !== wireTypes.endGroup) this.#skip(tag, end, depth + 1)
      else if (tag >>> 3 === number) return
      else this.#fail(`end of group ${tag >>> 3} in group ${number}`)
    }
  }

  /** Over a packed run of numbers. */
  #run(wire: number, end: number): void {
    while (this.#position < end) {
      if (wire === wireTypes.varint) this.#varint(end, maxVarint)
      else this.#advance(wire === wireTypes.fixed32 ? 4 : 8, end)
    }
  }

  #tag(end: number): number {
    const tag = this.#unsigned(end)
    if (tag >= 2 ** 32 || tag < 8) this.#fail(`field number ${Math.floor(tag / 8)}`)
    return tag
  }

  /** Reads the length of a field, and returns the end of the field. */
  #end(limit: number): number {
    const length = this.#unsigned(limit)
    if (length > limit - this.#position) {
      this.#fail(`length ${length}, where ${limit - this.#position} bytes are left`)
    }
    return this.#position + length
  }

  /** A tag or a length. */
  #unsigned(end: number): number {
    const start = this.#position
    this.#varint(end, maxTag)
    let value = 0
    for (let index = this.#position - 1; index >= start; index--)
      value = value * 0x80 + ((this.#bytes[index] ?? 0) & 0x7f)
    return value
  }

  #varint(end: number, maxLength: number): void {
    const limit = Math.min(end, this.#position + maxLength)
    for (let position = this.#position; position < limit; position++) {
      if ((this.#bytes[position] ?? 0) >= 0x80) continue
      this.#position = position + 1
      return
    }
    this.#fail(limit === end ? "incomplete number" : `number of more than ${maxLength} bytes`)
  }

  #advance(length: number, end: number): void {
    if (length > end - this.#position) this.#fail("incomplete number")
    this.#position += length
  }

  #fail(problem: string): never {
    throw new Error(`${problem}, at byte ${this.#position}`)
  }
}

const known = new WeakMap<DescMessage, Fields>()

const fieldsOf = (schema: DescMessage): Fields => {
  const found = known.get(schema)
  if (found !== undefined) return found
  const fields = new Map<number, Field>()
  // Before its fields, which may be of this message again.
  known.set(schema, fields)
  for (const field of schema.fields) fields.set(field.number, fieldOf(field))
  return fields
}

const fieldOf = (field: DescField): Field => {
  switch (field.fieldKind) {
    case "map":
      return {
        wire: wireTypes.delimited,
        isPackable: false,
        fields: new Map([
          [1, single(field.mapKey, undefined)],
          [2, single(field.scalar, field.message)],
        ]),
      }
    case "list":
    case "message":
    case "scalar":
    case "enum": {
      const one = single(field.scalar, field.message)
      return { ...one, isPackable: field.fieldKind === "list" && one.wire !== wireTypes.delimited }
    }
  }
}

/** Of a scalar, a message, or else an enum. */
const single = (scalar: ScalarType | undefined, message: DescMessage | undefined): Field => {
  if (message !== undefined) return { wire: wireTypes.delimited, isPackable: false, fields: fieldsOf(message) }
  return { wire: scalarWire(scalar), isPackable: false, fields: undefined }
}

const scalarWire = (scalar: ScalarType | undefined): number => {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return wireTypes.delimited
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return wireTypes.fixed64
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return wireTypes.fixed32
    default:
      return wireTypes.varint
  }
}
