/**
 * Writes JSON as bytes: strings, and the elements of tensors with the fewest digits that read back to the same value.
 * NaN and the infinities are written as such. It knows JSON only; what a response is, JsonEncoder.ts knows.
 */
import { byteWidth, isDataType } from "../DataType.ts"
import { longest as longestSingle, writeSingles } from "./JsonFloats.ts"
import { elementCount } from "../TypedTensor.ts"
import type { WireTensor } from "../WireRequest.ts"

const encoder = new TextEncoder()
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The longest number: `-1.7976931348623157e+308,` and 64-bit integers are shorter than this. */
const longestNumber = 32

export class JsonWriter {
  #bytes: Uint8Array
  #length = 0

  constructor(capacity = 512) {
    this.#bytes = new Uint8Array(capacity)
  }

  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Text that needs no escapes and has one byte per character. */
  ascii(text: string): void {
    this.#reserve(text.length)
    for (let index = 0; index < text.length; index++) this.#bytes[this.#length++] = text.charCodeAt(index)
  }

  string(text: string): void {
    const literal = JSON.stringify(text)
    this.#reserve(literal.length * 3)
    this.#length += encoder.encodeInto(literal, this.#bytes.subarray(this.#length)).written
  }

  /** A number is written so that its reader takes it for a double, a bigint so that it is an integer. */
  scalar(value: boolean | bigint | number | string): void {
    if (typeof value === "string") this.string(value)
    else this.ascii(typeof value === "number" ? double(value) : String(value))
  }

  /** A tensor's elements with commas between them; a message where they have no JSON form. */
  elements({ name, datatype, bytes, shape }: WireTensor): string | undefined {
    if (!isDataType(datatype) || datatype === "FP16" || datatype === "BF16") {
      return `sending ${datatype} data via JSON is not supported. Please use the binary data format for output ${name}`
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (datatype === "BYTES") return this.#strings(name, view)
    const count = Math.min(elementCount(shape), Math.floor(bytes.length / (byteWidth(datatype) ?? 1)))
    if (datatype === "FP32") {
      this.#singles(bytes, count)
      return undefined
    }
    const write = this.#writers[datatype]
    for (let index = 0; index < count; index++) {
      this.#reserve(longestNumber)
      if (index > 0) this.#bytes[this.#length++] = 0x2c
      write(view, index)
    }
    return undefined
  }

  readonly #writers = {
    BOOL: (view: DataView, index: number) => this.ascii(view.getUint8(index) === 0 ? "false" : "true"),
    UINT8: (view: DataView, index: number) => this.#digits(view.getUint8(index)),
    UINT16: (view: DataView, index: number) => this.#digits(view.getUint16(index * 2, true)),
    UINT32: (view: DataView, index: number) => this.#digits(view.getUint32(index * 4, true)),
    UINT64: (view: DataView, index: number) => this.#long(view, index, view.getUint32(index * 8 + 4, true)),
    INT8: (view: DataView, index: number) => this.#integer(view.getInt8(index)),
    INT16: (view: DataView, index: number) => this.#integer(view.getInt16(index * 2, true)),
    INT32: (view: DataView, index: number) => this.#integer(view.getInt32(index * 4, true)),
    INT64: (view: DataView, index: number) => this.#long(view, index, view.getInt32(index * 8 + 4, true)),
    FP64: (view: DataView, index: number) => this.ascii(float(view.getFloat64(index * 8, true))),
  }

  #integer(value: number): void {
    if (value < 0) this.#bytes[this.#length++] = 0x2d
    this.#digits(Math.abs(value))
  }

  /** `high` is the upper word, signed as the datatype is: where it is small, the number is exact as a double. */
  #long(view: DataView, index: number, high: number): void {
    const exact = high >= -0x20_0000 && high < 0x20_0000
    if (exact) this.#integer(high * 0x1_0000_0000 + view.getUint32(index * 8, true))
    else this.ascii(String(high < 0 ? view.getBigInt64(index * 8, true) : view.getBigUint64(index * 8, true)))
  }

  /** A whole number of at most 2^53. */
  #digits(value: number): void {
    let end = this.#length + 1
    for (let power = 10; power <= value; power *= 10) end += 1
    this.#length = end
    this.#digitsBefore(value, end)
  }

  #digitsBefore(value: number, end: number): void {
    const bytes = this.#bytes
    let position = end
    let rest = value
    for (; rest > 0x7fff_ffff; position--) {
      const next = Math.floor(rest / 10)
      bytes[position - 1] = 0x30 + (rest - next * 10)
      rest = next
    }
    // From here on 32-bit integers, whose division by ten is a multiplication.
    let small = rest | 0
    do {
      const next = (small / 10) | 0
      bytes[--position] = 0x30 + (small - next * 10)
      small = next
    } while (small > 0)
  }

  #singles(bytes: Uint8Array, count: number): void {
    // What most of them take; where it is too little, it grows.
    this.#reserve(count * 12)
    for (let from = 0; from < count; from += singles.length) {
      const several = Math.min(singles.length, count - from)
      // A copy, as the tensor may begin anywhere.
      singleBytes.set(bytes.subarray(from * 4, (from + several) * 4))
      this.#reserve((several + 1) * longestSingle)
      if (from > 0) this.#bytes[this.#length++] = 0x2c
      const { buffer, byteOffset, byteLength } = this.#bytes
      const view = new DataView(buffer, byteOffset, byteLength)
      this.#length = writeSingles(singles, singleBits, several, this.#bytes, view, this.#length)
    }
  }

  #strings(name: string, view: DataView): string | undefined {
    let element = 0
    for (let offset = 0; offset < view.byteLength; element++) {
      const length = view.getUint32(offset, true)
      const content = new Uint8Array(view.buffer, view.byteOffset + offset + 4, length)
      if (element > 0) this.ascii(",")
      try {
        this.string(strict.decode(content))
      } catch {
        const advice = `Please use the binary data format for output ${name}`
        return `element ${element} of output '${name}' is not UTF-8 text and cannot be sent as JSON. ${advice}`
      }
      offset += 4 + length
    }
    return undefined
  }

  #reserve(length: number): void {
    if (this.#length + length <= this.#bytes.length) return
    const larger = new Uint8Array((this.#length + length) * 2)
    larger.set(this.#bytes)
    this.#bytes = larger
  }
}

/** FP32 values on their way, as numbers, bits and bytes. */
const singles = new Float32Array(1024)
const singleBits = new Int32Array(singles.buffer)
const singleBytes = new Uint8Array(singles.buffer)

/** As JavaScript writes it, with the sign of a zero. */
const float = (value: number): string => (Object.is(value, -0) ? "-0.0" : String(value))

/** With a point even where it is whole, so that its reader takes it for a double too. */
const double = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) < 1e21 ? `${Object.is(value, -0) ? "-0" : value}.0` : String(value)
