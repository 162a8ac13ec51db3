/**
 * Reads the numbers of one array through the kernel's memory, in pieces, so that the memory does not grow with the
 * document. JsonElements.ts reads the numbers that the kernel cannot, and nested arrays.
 */
import { byteWidth } from "../../tensor/DataType.ts"
import type { JsonDataType } from "./JsonDataType.ts"
import type { JsonReader } from "./JsonReader.ts"
import { margin, type NumberKernel } from "./NumberKernel.ts"

export type NumberDataType = Exclude<JsonDataType, "BOOL" | "BYTES">

/** Typical bytes of an element; limits how much of the text behind a short array is copied. */
const likelyLength = 24

/** Maximum length that is copied byte by byte. */
const fewBytes = 64

const comma = 0x2c

export class NumberWindow {
  readonly #kernel: NumberKernel
  readonly #reader: JsonReader
  readonly #datatype: NumberDataType
  readonly #width: number
  /** Of the tensor, all of it. */
  readonly #data: Uint8Array
  /** The part of the document in the window, and the last position at which a number may begin. */
  #from = 0
  #limit = 0

  constructor(kernel: NumberKernel, reader: JsonReader, datatype: NumberDataType, data: Uint8Array) {
    this.#kernel = kernel
    this.#reader = reader
    this.#datatype = datatype
    this.#width = byteWidth(datatype) ?? 1
    this.#data = data
  }

  /**
   * Reads numbers from the reader's position as elements from `index` on, and returns their count. The reader moves to
   * the comma or bracket after the last number read, or stays if none was read.
   */
  read(index: number): number {
    const { elementBytes, text, elements, end } = this.#kernel
    const reader = this.#reader
    const left = this.#data.length / this.#width - index
    const capacity = elementBytes.length / this.#width
    let read = 0
    let next = reader.position
    while (read < left) {
      if (next >= this.#limit || next < this.#from) this.#move(next, left - read)
      const maxCount = Math.min(left - read, capacity)
      const several = this.#call(text + next - this.#from, text + this.#limit - this.#from, elements, maxCount)
      if (several === 0) break
      this.#take((index + read) * this.#width, several * this.#width)
      read += several
      reader.position = this.#from + end() - text
      if (reader.bytes[reader.position] !== comma) break
      next = reader.position + 1
    }
    return read
  }

  #call(from: number, limit: number, target: number, maxCount: number): number {
    const { functions } = this.#kernel
    switch (this.#datatype) {
      case "FP32":
        return functions.readSingles(from, limit, target, maxCount)
      case "FP64":
        return functions.readDoubles(from, limit, target, maxCount)
      default:
        return functions.readIntegers(from, limit, target, maxCount, this.#width, this.#datatype.startsWith("I"))
    }
  }

  #take(offset: number, length: number): void {
    const { elementBytes } = this.#kernel
    if (length > fewBytes) this.#data.set(elementBytes.subarray(0, length), offset)
    else for (let index = 0; index < length; index++) this.#data[offset + index] = elementBytes[index] ?? 0
  }

  /**
   * Moves the start of the window, and fills it with the typical length of the given number of elements, if it fits.
   */
  #move(from: number, elements: number): void {
    const { textBytes } = this.#kernel
    const { bytes } = this.#reader
    const size = Math.min(textBytes.length - margin, margin + elements * likelyLength)
    const to = Math.min(from + size, bytes.length)
    textBytes.set(bytes.subarray(from, to))
    textBytes.fill(0, to - from, to - from + margin)
    this.#from = from
    // A number that begins before the limit and ends behind the window is read when the window begins with it.
    this.#limit = to === bytes.length ? to : to - margin / 2
  }
}
