/**
 * Writes JSON as bytes: strings, and tensor elements with the fewest digits that read back to the same value. NaN and
 * the infinities are written by name. JsonEncoder.ts defines the structure of responses.
 */
import { byteWidth, isDataType } from "../../tensor/DataType.ts"
import type { JsonDataType } from "./JsonDataType.ts"
import { longest as longestSingle, writeSingles } from "./JsonFloats.ts"
import { type NumberKernel, numberKernel, worthwhile } from "./NumberKernel.ts"
import * as SmallMemory from "../../tensor/SmallMemory.ts"
import { elementCount, elementLength } from "../../tensor/TypedTensor.ts"
import type { WireTensor } from "../../wire/WireRequest.ts"

const encoder = new TextEncoder()
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The longest number: `-1.7976931348623157e+308,` and 64-bit integers are shorter than this. */
const longestNumber = 32

/** Shared buffer for small documents; undefined while a writer uses it. */
let scratch: DataView<ArrayBuffer> | undefined
const scratchSize = 16 * 1024

export class JsonWriter {
  #view: DataView<ArrayBuffer>
  #bytes: Uint8Array<ArrayBuffer>
  #length = 0

  constructor() {
    this.#view = scratch ?? new DataView(new ArrayBuffer(scratchSize))
    this.#bytes = new Uint8Array(this.#view.buffer)
    scratch = undefined
  }

  /** Returns the written bytes, which no later writer overwrites. Nothing can be written afterwards. */
  written(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length)
    if (this.#bytes.length > scratchSize) return bytes
    const copied = SmallMemory.copy(bytes)
    scratch = this.#view
    return copied
  }

  /** Text that needs no escapes and has one byte per character. */
  ascii(text: string): void {
    this.#reserve(text.length)
    const bytes = this.#bytes
    const offset = this.#length
    for (let index = 0; index < text.length; index++) bytes[offset + index] = text.charCodeAt(index)
    this.#length = offset + text.length
  }

  string(text: string): void {
    this.#reserve(text.length + 2)
    const bytes = this.#bytes
    let offset = this.#length
    bytes[offset++] = quote
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code < 0x20 || code > 0x7e || code === quote || code === backslash) return this.#escaped(text)
      bytes[offset++] = code
    }
    bytes[offset++] = quote
    this.#length = offset
  }

  #escaped(text: string): void {
    const literal = JSON.stringify(text)
    this.#reserve(literal.length * 3)
    this.#length += encoder.encodeInto(literal, this.#bytes.subarray(this.#length)).written
  }

  /** A number is written so that its reader takes it for a double, a bigint so that it is an integer. */
  scalar(value: boolean | bigint | number | string): void {
    if (typeof value === "string") this.string(value)
    else this.ascii(typeof value === "number" ? double(value) : String(value))
  }

  /** Writes a tensor's elements, separated by commas; returns a message if they have no JSON form. */
  elements({ name, datatype, bytes, shape }: WireTensor): string | undefined {
    if (!isDataType(datatype) || datatype === "FP16" || datatype === "BF16") {
      return `sending ${datatype} data via JSON is not supported. Please use the binary data format for output ${name}`
    }
    const count = Math.min(elementCount(shape), Math.floor(bytes.length / (byteWidth(datatype) ?? 1)))
    if (datatype === "FP32" || datatype === "FP64") {
      const kernel = count < worthwhile ? undefined : numberKernel()
      if (kernel !== undefined) {
        // Enough for most arrays. Reserving the maximum would clear twice as much memory; the buffer grows if
        // necessary.
        this.#reserve(count * (datatype === "FP32" ? 12 : 20), 16 * longestNumber)
        this.#throughKernel(kernel, datatype, bytes, count)
        return undefined
      }
    }
    if (datatype === "FP32") {
      this.#singles(bytes, count)
      return undefined
    }
    if (datatype === "BYTES") return this.#strings(name, bytes)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let index = 0; index < count; index++) {
      this.#reserve(longestNumber)
      if (index > 0) this.#bytes[this.#length++] = 0x2c
      this.#element(datatype, view, index)
    }
    return undefined
  }

  #element(datatype: Exclude<JsonDataType, "BYTES" | "FP32">, view: DataView, index: number): void {
    switch (datatype) {
      case "BOOL":
        return this.ascii(view.getUint8(index) === 0 ? "false" : "true")
      case "UINT8":
        return this.#digits(view.getUint8(index))
      case "UINT16":
        return this.#digits(view.getUint16(index * 2, true))
      case "UINT32":
        return this.#digits(view.getUint32(index * 4, true))
      case "UINT64":
        return this.#long(view, index, view.getUint32(index * 8 + 4, true))
      case "INT8":
        return this.#integer(view.getInt8(index))
      case "INT16":
        return this.#integer(view.getInt16(index * 2, true))
      case "INT32":
        return this.#integer(view.getInt32(index * 4, true))
      case "INT64":
        return this.#long(view, index, view.getInt32(index * 8 + 4, true))
      case "FP64":
        return this.ascii(float(view.getFloat64(index * 8, true)))
    }
  }

  /** A whole number of at most 2^53. */
  whole(value: number): void {
    this.#reserve(longestNumber)
    this.#integer(value)
  }

  #integer(value: number): void {
    if (value < 0) this.#bytes[this.#length++] = 0x2d
    this.#digits(Math.abs(value))
  }

  /** Writes a 64-bit integer. `high` is the upper word, with the datatype's sign; if it is small, a double is exact. */
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
    // Enough for most arrays; the buffer grows if necessary.
    this.#reserve(count * 12)
    for (let from = 0; from < count; from += singles.length) {
      const several = Math.min(singles.length, count - from)
      // A copy, as the tensor may begin anywhere.
      singleBytes.set(bytes.subarray(from * 4, (from + several) * 4))
      this.#reserve((several + 1) * longestSingle)
      if (from > 0) this.#bytes[this.#length++] = 0x2c
      this.#length = writeSingles(singles, singleBits, several, this.#bytes, this.#view, this.#length)
    }
  }

  /** By the kernel, which writes a comma behind each, and leaves some to JavaScript. */
  #throughKernel(kernel: NumberKernel, datatype: "FP32" | "FP64", bytes: Uint8Array, count: number): void {
    const { textBytes, elementBytes, text, elements, end, functions } = kernel
    const [width, write] = datatype === "FP32" ? [4, functions.writeSingles] : [8, functions.writeDoubles]
    const capacity = textBytes.length / longestNumber
    for (let from = 0; from < count; from += capacity) {
      const several = Math.min(capacity, count - from)
      elementBytes.set(bytes.subarray(from * width, (from + several) * width))
      for (let index = 0; index < several; index++) {
        index += write(elements + index * width, several - index, text)
        const length = end() - text
        // Reserves space for a remaining number, too.
        this.#reserve(length + 2 * longestNumber)
        this.#bytes.set(textBytes.subarray(0, length), this.#length)
        this.#length += length
        if (index === several) break
        this.#one(datatype, elementBytes.subarray(index * width, (index + 1) * width))
        this.#bytes[this.#length++] = 0x2c
      }
    }
    this.#length -= 1
  }

  #one(datatype: "FP32" | "FP64", bytes: Uint8Array): void {
    if (datatype === "FP32") {
      singleBytes.set(bytes)
      this.#length = writeSingles(singles, singleBits, 1, this.#bytes, this.#view, this.#length)
    } else this.ascii(float(new DataView(bytes.buffer, bytes.byteOffset).getFloat64(0, true)))
  }

  #strings(name: string, bytes: Uint8Array): string | undefined {
    let element = 0
    for (let offset = 0; offset < bytes.length; element++) {
      const end = offset + 4 + elementLength(bytes, offset)
      const content = bytes.subarray(offset + 4, end)
      if (element > 0) this.ascii(",")
      if (!this.#plain(content)) {
        try {
          this.string(strict.decode(content))
        } catch {
          const advice = `Please use the binary data format for output ${name}`
          return `element ${element} of output '${name}' is not UTF-8 text and cannot be sent as JSON. ${advice}`
        }
      }
      offset = end
    }
    return undefined
  }

  /** Writes a text of one byte per character that needs no escapes. Returns false, having written nothing, for others. */
  #plain(text: Uint8Array): boolean {
    this.#reserve(text.length + 2)
    const target = this.#bytes
    let offset = this.#length
    target[offset++] = quote
    for (let index = 0; index < text.length; index++) {
      const byte = text[index] ?? 0
      if (byte < 0x20 || byte > 0x7e || byte === quote || byte === backslash) return false
      target[offset++] = byte
    }
    target[offset++] = quote
    this.#length = offset
    return true
  }

  #reserve(length: number, spare = this.#length + length): void {
    if (this.#length + length <= this.#bytes.length) return
    const larger = new Uint8Array(this.#length + length + spare)
    larger.set(this.#bytes.subarray(0, this.#length))
    if (this.#bytes.length <= scratchSize) scratch = this.#view
    this.#bytes = larger
    this.#view = new DataView(larger.buffer)
  }
}

const quote = 0x22
const backslash = 0x5c

/** FP32 values on their way, as numbers, bits and bytes. */
const singles = new Float32Array(1024)
const singleBits = new Int32Array(singles.buffer)
const singleBytes = new Uint8Array(singles.buffer)

/** As JavaScript writes it, with the sign of a zero. */
const float = (value: number): string => (Object.is(value, -0) ? "-0.0" : String(value))

/** Formats whole numbers with a point too, so that readers parse them as doubles. */
const double = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) < 1e21 ? `${Object.is(value, -0) ? "-0" : value}.0` : String(value)
