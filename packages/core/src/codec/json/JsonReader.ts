/**
 * Reads JSON text from bytes: it traverses a document once and returns the parts that the caller requests. The numbers
 * of a large tensor never become JavaScript arrays (JsonElements.ts). JsonDecoder.ts defines the structure of requests.
 *
 * NaN, Infinity and -Infinity are numbers in the data of tensors. A request must not have them elsewhere, and its
 * strings must be UTF-8. Responses are read leniently, because Triton sends any bytes as strings.
 *
 * The reader throws its failures; the codec converts them to a Result.
 */
import { InvalidRequest, MalformedRequest } from "../../error/InferenceError.ts"
import { invalidUtf8 } from "./Utf8.ts"

/** Kind of the value at a position, determined by its first byte. */
export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null"

/** Maximum nesting depth. Only skipped values can come near it; skipping is not recursive. */
const maxDepth = 1_000_000

const quote = 0x22
const comma = 0x2c
const minus = 0x2d
const colon = 0x3a
const openArray = 0x5b
const backslash = 0x5c
const closeArray = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/** A text may begin with a byte order mark, which is a character of it like any other. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

export class JsonReader {
  readonly bytes: Uint8Array
  position = 0
  readonly #document: "request" | "response"
  #view: DataView | undefined

  constructor(bytes: Uint8Array, document: "request" | "response") {
    this.bytes = bytes
    this.#document = document
  }

  /** The same bytes, for reading several at once. */
  get view(): DataView {
    return (this.#view ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength))
  }

  /** Throws for text that is not JSON. */
  fail(reason: string, at = this.position): never {
    throw new MalformedRequest({ message: this.#problem(reason, at) })
  }

  /** Throws for JSON that another reader might understand differently. */
  refuse(reason: string, at = this.position): never {
    throw new InvalidRequest({ message: this.#problem(reason, at) })
  }

  #problem(reason: string, at: number): string {
    return `failed to parse the ${this.#document} JSON buffer: ${reason} at ${at}`
  }

  /** The next byte after white space; -1 at the end. */
  peek(): number {
    const { bytes } = this
    let position = this.position
    let byte = bytes[position]
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++position]
    this.position = position
    return byte ?? -1
  }

  /** Refuses anything after the document. */
  end(): void {
    if (this.peek() !== -1) this.fail("The document root must not be followed by other values.")
  }

  kind(): JsonKind {
    switch (this.peek()) {
      case openObject:
        return "object"
      case openArray:
        return "array"
      case quote:
        return "string"
      case 0x74:
      case 0x66:
        return "boolean"
      case 0x6e:
        return "null"
      default:
        return "number"
    }
  }

  /** Calls `member` behind every key; it must read or skip the value. */
  object(member: (key: string) => void): void {
    this.position += 1
    if (this.peek() === closeObject) {
      this.position += 1
      return
    }
    for (;;) {
      member(this.#key())
      if (!this.#hasNext(closeObject)) return
    }
  }

  /** Calls `element` before every element; it must read or skip it. */
  array(element: () => void): void {
    this.position += 1
    if (this.peek() === closeArray) {
      this.position += 1
      return
    }
    for (;;) {
      element()
      if (!this.#hasNext(closeArray)) return
    }
  }

  /** Over one value of any kind, checking its syntax. `isData`: whether it belongs to the data of a tensor. */
  skip(isData = false): void {
    const open: Array<typeof closeObject | typeof closeArray> = []
    for (;;) {
      const byte = this.peek()
      if (byte === openObject || byte === openArray) {
        const close = byte === openObject ? closeObject : closeArray
        this.position += 1
        if (this.peek() !== close) {
          if (open.push(close) > maxDepth) this.fail(`JSON nesting depth exceeds maximum allowed limit (${maxDepth})`)
          if (close === closeObject) this.#key()
          continue
        }
        this.position += 1
      } else if (byte === quote) {
        const from = this.position + 1
        // Only its escapes are yet to be checked.
        if (this.skipString()) this.unescape(from, this.position - 1, new Uint8Array(this.position - 1 - from), 0)
      } else if (byte === 0x74 || byte === 0x66) this.boolean()
      else if (byte === 0x6e) this.null()
      else this.skipNumber(isData)
      for (;;) {
        const close = open.at(-1)
        if (close === undefined) return
        if (this.#hasNext(close)) {
          if (close === closeObject) this.#key()
          break
        }
        open.pop()
      }
    }
  }

  boolean(): boolean {
    const value = this.bytes[this.position] === 0x74
    this.#literal(value ? "true" : "false")
    return value
  }

  null(): void {
    this.#literal("null")
  }

  /** The text of a number, as it stands there. */
  numberText(isData = false): string {
    const from = this.position
    this.skipNumber(isData)
    return this.text(from, this.position)
  }

  skipNumber(isData = false): void {
    const { bytes } = this
    const from = this.position
    let position = bytes[from] === minus ? from + 1 : from
    const first = bytes[position]
    if (first === 0x4e && position === from) return this.#notFinite("NaN", from, isData)
    if (first === 0x49) {
      this.position = position
      const long = bytes[position + 3] === 0x69
      return this.#notFinite(long ? "Infinity" : "Inf", from, isData)
    }
    if (!isDigit(first)) {
      this.fail(this.#isEmpty() ? "The document is empty." : "Invalid value.")
    }
    position += 1
    if (first !== 0x30) while (isDigit(bytes[position])) position += 1
    if (bytes[position] === 0x2e) {
      position += 1
      if (!isDigit(bytes[position])) this.fail("Miss fraction part in number.", position)
      while (isDigit(bytes[position])) position += 1
    }
    if (bytes[position] === 0x65 || bytes[position] === 0x45) {
      position += 1
      if (bytes[position] === 0x2b || bytes[position] === minus) position += 1
      if (!isDigit(bytes[position])) this.fail("Miss exponent in number.", position)
      while (isDigit(bytes[position])) position += 1
    }
    this.position = position
  }

  string(): string {
    const from = this.position + 1
    const escaped = this.skipString()
    const to = this.position - 1
    if (!escaped) return this.text(from, to)
    const bytes = new Uint8Array(to - from)
    return decoder.decode(bytes.subarray(0, this.unescape(from, to, bytes, 0)))
  }

  /** Over a string; whether it has escapes. Its content lies between the quotes. */
  skipString(): boolean {
    const { bytes } = this
    const start = this.position
    let escaped = false
    let bits = 0
    for (let position = start + 1; ; position++) {
      const byte = bytes[position]
      if (byte === quote) {
        this.position = position + 1
        if (bits > 0x7f && this.#document === "request") this.#checkText(start + 1, position)
        return escaped
      }
      if (byte === backslash) {
        escaped = true
        position += 1
        if (bytes[position] === undefined) this.fail("Missing a closing quotation mark in string.", start)
      } else if (byte === undefined) this.fail("Missing a closing quotation mark in string.", start)
      else if (byte < 0x20) this.fail("Invalid encoding in string.", position)
      else bits |= byte
    }
  }

  /**
   * Writes a string's content as UTF-8 with its escapes resolved, and returns the end offset. The output is never
   * longer than the input.
   */
  unescape(from: number, to: number, target: Uint8Array, offset: number): number {
    const { bytes } = this
    for (let position = from; position < to;) {
      const byte = bytes[position] ?? 0
      if (byte !== backslash) {
        target[offset++] = byte
        position += 1
        continue
      }
      const escape = bytes[position + 1] ?? 0
      if (escape !== 0x75) {
        target[offset++] = escapes.get(escape) ?? this.fail("Invalid escape character in string.", position)
        position += 2
        continue
      }
      let point = this.#hex(position + 2, to)
      const start = position
      position += 6
      if (point >= 0xd800 && point <= 0xdfff) {
        const follows = bytes[position] === backslash && bytes[position + 1] === 0x75
        const low = point <= 0xdbff && follows ? this.#hex(position + 2, to) : 0
        if (low < 0xdc00 || low > 0xdfff) this.fail("The surrogate pair in string is invalid.", start)
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00)
        position += 6
      }
      if (point < 0x80) target[offset++] = point
      else if (point < 0x800) {
        target[offset++] = 0xc0 | (point >> 6)
        target[offset++] = 0x80 | (point & 0x3f)
      } else if (point < 0x10000) {
        target[offset++] = 0xe0 | (point >> 12)
        target[offset++] = 0x80 | ((point >> 6) & 0x3f)
        target[offset++] = 0x80 | (point & 0x3f)
      } else {
        target[offset++] = 0xf0 | (point >> 18)
        target[offset++] = 0x80 | ((point >> 12) & 0x3f)
        target[offset++] = 0x80 | ((point >> 6) & 0x3f)
        target[offset++] = 0x80 | (point & 0x3f)
      }
    }
    return offset
  }

  /** The bytes of a span as text. Keys and names are short ASCII, for which a decoder's call costs more than a loop. */
  text(from: number, to: number): string {
    if (to - from > 32) return decoder.decode(this.bytes.subarray(from, to))
    let text = ""
    for (let position = from; position < to; position++) {
      const byte = this.bytes[position] ?? 0
      if (byte > 0x7f) return decoder.decode(this.bytes.subarray(from, to))
      text += String.fromCharCode(byte)
    }
    return text
  }

  #isEmpty(): boolean {
    return this.bytes.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)
  }

  #key(): string {
    if (this.peek() !== quote) this.fail("Missing a name for object member.")
    const key = this.string()
    if (this.peek() !== colon) this.fail("Missing a colon after a name of object member.")
    this.position += 1
    this.peek()
    return key
  }

  /** Whether a comma follows; false behind the closing bracket. */
  #hasNext(close: typeof closeObject | typeof closeArray): boolean {
    const byte = this.peek()
    if (byte !== comma && byte !== close) {
      this.fail(
        close === closeObject
          ? "Missing a comma or } after an object member."
          : "Missing a comma or ] after an array element.",
      )
    }
    this.position += 1
    if (byte === close) return false
    this.peek()
    return true
  }

  #checkText(from: number, to: number): void {
    const at = invalidUtf8(this.bytes, from, to)
    if (at !== undefined) this.refuse("Invalid encoding in string.", at)
  }

  #notFinite(text: string, start: number, isData: boolean): void {
    this.#literal(text, start)
    if (!isData && this.#document === "request") this.refuse(`${text} outside the data of a tensor`, start)
  }

  #literal(text: string, start = this.position): void {
    for (let index = 0; index < text.length; index++) {
      if (this.bytes[this.position + index] !== text.charCodeAt(index)) this.fail("Invalid value.", start)
    }
    this.position += text.length
  }

  #hex(from: number, to: number): number {
    let value = 0
    for (let position = from; position < from + 4; position++) {
      const digit = position < to ? hexDigit(this.bytes[position] ?? 0) : -1
      if (digit < 0) this.fail("Incorrect hex digit after \\u escape in string.", from - 2)
      value = value * 16 + digit
    }
    return value
  }
}

const escapes: ReadonlyMap<number, number> = new Map([
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x2f, 0x2f],
  [0x62, 0x08],
  [0x66, 0x0c],
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
])

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39

const hexDigit = (byte: number): number => {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
