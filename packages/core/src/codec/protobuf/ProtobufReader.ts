/**
 * A cursor over the bytes of a protobuf message, for hand-written codecs of a single message type. It reads the usual
 * encodings, and sets a failure flag for any other. A failure does not mean that the message is invalid: a general
 * codec must decode it. Values read after a failure are meaningless.
 */
export class ProtobufReader {
  position: number
  failed = false
  readonly #bytes: Uint8Array
  readonly #end: number

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes
    this.#end = end
    this.position = start
  }

  /** A tag of one byte, which fields up to 15 have; or the first byte of something else. */
  tag(): number {
    return this.#bytes[this.position++] ?? 0
  }

  /** Reads the length of a length-delimited field, and returns the field's end, which must not exceed `limit`. */
  end(limit = this.#end): number {
    const first = this.#bytes[this.position] ?? 0
    if (first < 0x80) {
      const end = ++this.position + first
      if (end <= limit) return end
    } else {
      const start = this.position
      const end = this.varint() + this.position
      if (end <= limit && this.position - start <= maxLength) return end
    }
    this.failed = true
    return this.position
  }

  /** Exact up to 2^49, and failed beyond. */
  varint(): number {
    let value = this.#bytes[this.position++] ?? this.#fail()
    if (value < 0x80) return value
    value &= 0x7f
    for (let scale = 0x80; scale < 2 ** 49; scale *= 0x80) {
      const byte = this.#bytes[this.position++] ?? this.#fail()
      if (byte < 0x80) return value + byte * scale
      value += (byte & 0x7f) * scale
    }
    return this.#fail()
  }

  /** The same of 64 bits, without a sign. */
  varint64(): bigint {
    const start = this.position
    const value = this.varint()
    if (!this.failed) return BigInt(value)
    this.failed = false
    this.position = start
    let long = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.position++] ?? this.#fail()
      long |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, long)
    }
    this.#fail()
    return 0n
  }

  double(limit: number): number {
    const { buffer, byteOffset } = this.#bytes
    this.position += 8
    if (this.position > limit) return this.#fail()
    return new DataView(buffer, byteOffset).getFloat64(this.position - 8, true)
  }

  /** A text that is likely to come again with the next message, as names are: it is made once. */
  name(end: number): string {
    const bytes = this.#bytes
    const { position } = this
    const length = end - position
    if (length > longestName) return this.text(end)
    let hash = length
    for (let index = position; index < end; index++) hash = (Math.imul(hash, 31) + (bytes[index] ?? 0)) | 0
    const place = hash & (places - 1)
    const candidate = names[place] ?? ""
    if (candidate.length === length && this.#matches(candidate)) {
      this.position = end
      return candidate
    }
    const name = this.text(end)
    // Of as many characters as bytes, or it would not be found.
    if (!this.failed && name.length === length) names[place] = name
    return name
  }

  /** Reads a string without the cache of names. */
  text(end: number): string {
    const bytes = this.#bytes
    const from = this.position
    this.position = end
    let text = ""
    if (end - from <= longestByCharacter) {
      let index = from
      for (; index < end; index++) {
        const byte = bytes[index] ?? 0
        if (byte >= 0x80) break
        text += String.fromCharCode(byte)
      }
      if (index === end) return text
    }
    try {
      return decoder.decode(bytes.subarray(from, end))
    } catch {
      this.failed = true
      return ""
    }
  }

  /** On the bytes of the message. */
  view(end: number): Uint8Array {
    const bytes = this.#bytes
    const view = new Uint8Array(bytes.buffer, bytes.byteOffset + this.position, end - this.position)
    this.position = end
    return view
  }

  #matches(text: string): boolean {
    const bytes = this.#bytes
    const { position } = this
    for (let index = 0; index < text.length; index++) {
      if (text.charCodeAt(index) !== bytes[position + index]) return false
    }
    return true
  }

  #fail(): number {
    this.failed = true
    return 0
  }
}

/** Of field `field` where its length stands before it: texts, bytes, messages and packed numbers. */
export const delimited = (field: number): number => (field << 3) | 2

/** Tag of a varint field. */
export const varint = (field: number): number => field << 3

/** Tag of a field of eight bytes. */
export const fixed64 = (field: number): number => (field << 3) | 1

/** By a hash of their bytes; a name that has another's place takes it over. */
const places = 512
const names = Array.from({ length: places }, () => "")

/** Bytes of a length; more are invalid. */
const maxLength = 5

/** Bytes of what counts as a name. */
const longestName = 64

/** Characters up to which putting them together one by one is faster than a decoder. */
const longestByCharacter = 12

/** As strict as protobuf's own, for which a mark of byte order is a character too. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
