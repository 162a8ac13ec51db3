/**
 * A cursor that writes the fields of a protobuf message into bytes of the exact length, computed in advance by the
 * length functions below. For hand-written codecs of a single message type.
 */
export class ProtobufWriter {
  position: number
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array, position: number) {
    this.#bytes = bytes
    this.position = position
  }

  byte(byte: number): void {
    this.#bytes[this.position++] = byte
  }

  /** Of an integer from 0 to 2^53 - 1. */
  varint(value: number): void {
    let rest = value
    for (; rest > 2 ** 31 - 1; rest = Math.floor(rest / 0x80)) this.#bytes[this.position++] = (rest % 0x80) | 0x80
    for (; rest >= 0x80; rest >>>= 7) this.#bytes[this.position++] = (rest & 0x7f) | 0x80
    this.#bytes[this.position++] = rest
  }

  /** The lowest 64 bits of any integer. */
  varint64(value: bigint): void {
    let rest = BigInt.asUintN(64, value)
    for (; rest >= 0x80n; rest >>= 7n) this.byte(Number(rest & 0x7fn) | 0x80)
    this.byte(Number(rest))
  }

  double(value: number): void {
    const { buffer, byteOffset } = this.#bytes
    new DataView(buffer, byteOffset).setFloat64(this.position, value, true)
    this.position += 8
  }

  /** Begins a field whose length stands before it. */
  open(tag: number, length: number): void {
    this.byte(tag)
    this.varint(length)
  }

  text(tag: number, text: string): void {
    const length = utf8Length(text)
    this.open(tag, length)
    if (length > text.length) encoder.encodeInto(text, this.#bytes.subarray(this.position))
    else for (let index = 0; index < length; index++) this.#bytes[this.position + index] = text.charCodeAt(index)
    this.position += length
  }

  /** The same, but for an empty text, which is the default. */
  optional(tag: number, text: string): void {
    if (text !== "") this.text(tag, text)
  }

  /** Extents in one packed run. */
  shape(tag: number, shape: ReadonlyArray<number>): void {
    if (shape.length === 0) return
    this.open(tag, extentsLength(shape))
    for (const extent of shape) {
      if (extent >= 0) this.varint(extent)
      else this.varint64(BigInt(extent))
    }
  }

  bytes(tag: number, bytes: Uint8Array): void {
    this.open(tag, bytes.length)
    this.#bytes.set(bytes, this.position)
    this.position += bytes.length
  }
}

/** Bytes of a length-delimited field, including its tag and its length prefix. */
export const delimitedLength = (length: number): number => 1 + varintLength(length) + length

/** Bytes of a string field, including its tag and its length prefix. */
export const textLength = (text: string): number => delimitedLength(utf8Length(text))

/** An empty text is the default, and not written. */
export const optionalLength = (text: string): number => (text === "" ? 0 : textLength(text))

/** Of a field with extents. */
export const shapeLength = (shape: ReadonlyArray<number>): number =>
  shape.length === 0 ? 0 : delimitedLength(extentsLength(shape))

const extentsLength = (shape: ReadonlyArray<number>): number => {
  let sum = 0
  for (const extent of shape) sum += extent >= 0 ? varintLength(extent) : varint64Length(BigInt(extent))
  return sum
}

export const varintLength = (value: number): number => {
  let length = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length += 1
  return length
}

export const varint64Length = (value: bigint): number => {
  let length = 1
  for (let rest = BigInt.asUintN(64, value) >> 7n; rest > 0n; rest >>= 7n) length += 1
  return length
}

const encoder = new TextEncoder()

/** The length in UTF-8; equal to the string's length only for ASCII. */
const utf8Length = (text: string): number => {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) >= 0x80) return encoder.encode(text).length
  }
  return text.length
}
