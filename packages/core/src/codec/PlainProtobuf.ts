/**
 * ModelInfer's messages in their plain form, which is nearly every message there is: names, datatypes and shapes, tensors as
 * raw contents, and nothing else. Read and written by hand, at a fraction of what a general codec costs; what is not plain
 * (parameters, typed contents, unknown fields, whatever is malformed) is left to ProtobufCodec.ts, whose verdict counts.
 */
import { noParameters } from "../Inference.ts"
import type { RequestedOutput, WireRequest, WireResponse, WireTensor } from "../WireRequest.ts"

/** The request of these bytes; undefined where it is not plain. Its tensors are views on `bytes`. */
export const read = (bytes: Uint8Array): WireRequest | undefined => {
  const reader = new Reader(bytes)
  const inputs: Array<Described> = []
  const contents: Array<Uint8Array> = []
  const outputs: Array<RequestedOutput> = []
  let [modelName, modelVersion, id] = ["", "", ""]
  while (reader.position < bytes.length) {
    const tag = reader.byte()
    const end = reader.end()
    if (end === undefined) return undefined
    switch (tag) {
      case tagOf(1):
        modelName = reader.text(end)
        break
      case tagOf(2):
        modelVersion = reader.text(end)
        break
      case tagOf(3):
        id = reader.text(end)
        break
      case tagOf(5): {
        const input = reader.tensor(end)
        if (input === undefined) return undefined
        inputs.push(input)
        break
      }
      case tagOf(6): {
        const output = reader.tensor(end)
        if (output === undefined || output.datatype !== "" || output.shape.length > 0) return undefined
        outputs.push({ name: output.name, binary: undefined })
        break
      }
      case tagOf(7):
        contents.push(reader.view(end))
        break
      default:
        return undefined
    }
    if (reader.failed) return undefined
  }
  if (contents.length !== inputs.length) return undefined
  return {
    modelName,
    modelVersion,
    id,
    parameters: noParameters,
    inputs: inputs.map((input, index): WireTensor => ({ ...input, bytes: contents[index] ?? noBytes })),
    outputs,
  }
}

/** The bytes of a response, after `headroom` bytes that are left for the caller; undefined where it is not plain. */
export const write = (response: WireResponse, headroom: number): Uint8Array<ArrayBuffer> | undefined => {
  const { modelName, modelVersion, id, parameters, outputs } = response
  if (parameters !== noParameters && Object.keys(parameters).length > 0) return undefined
  const sizes: Array<number> = []
  let length = headroom + fieldLength(modelName) + fieldLength(modelVersion) + fieldLength(id)
  for (const { name, datatype, shape, bytes, region } of outputs) {
    if (region !== undefined) return undefined
    const extents = shape.length === 0 ? 0 : delimited(shapeLength(shape))
    const size = fieldLength(name) + fieldLength(datatype) + extents
    sizes.push(size)
    length += delimited(size) + delimited(bytes.length)
  }
  const writer = new Writer(length, headroom)
  writer.text(tagOf(1), modelName)
  writer.text(tagOf(2), modelVersion)
  writer.text(tagOf(3), id)
  for (const [index, { name, datatype, shape }] of outputs.entries()) {
    writer.open(tagOf(5), sizes[index] ?? 0)
    writer.text(tagOf(1), name)
    writer.text(tagOf(2), datatype)
    if (shape.length === 0) continue
    writer.open(tagOf(3), shapeLength(shape))
    for (const extent of shape) writer.varint(extent)
  }
  for (const { bytes } of outputs) writer.bytes(tagOf(6), bytes)
  return writer.written()
}

/** Of a length-delimited field below 16, as all of both messages are. */
const tagOf = (field: number): number => (field << 3) | 2

/** Characters of a name that are worth putting together one by one. */
const longestText = 256

const noBytes = new Uint8Array(0)

interface Described {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
}

class Reader {
  position = 0
  /** Something was not plain; what was read since is nothing. */
  failed = false
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  byte(): number {
    return this.#bytes[this.position++] ?? -1
  }

  /** Where the length-delimited field ends whose length stands here; undefined where it has no such end. */
  end(limit = this.#bytes.length): number | undefined {
    const length = this.varint()
    const end = this.position + length
    return end <= limit ? end : undefined
  }

  /** Exact up to 2^49; NaN beyond, which no length and no extent passes. */
  varint(): number {
    let value = 0
    let scale = 1
    for (let index = 0; index < 7; index++) {
      const byte = this.byte()
      if (byte < 0) return Number.NaN
      if (byte < 0x80) return value + byte * scale
      value += (byte & 0x7f) * scale
      scale *= 0x80
    }
    return Number.NaN
  }

  text(end: number): string {
    let text = ""
    if (end - this.position > longestText) this.failed = true
    if (this.failed) return text
    for (; this.position < end; this.position++) {
      const byte = this.#bytes[this.position] ?? 0
      if (byte >= 0x80) this.failed = true
      text += String.fromCharCode(byte)
    }
    return text
  }

  view(end: number): Uint8Array {
    const view = this.#bytes.subarray(this.position, end)
    this.position = end
    return view
  }

  /** Name, datatype and shape, of an input; of an output only the name may be there. */
  tensor(end: number): Described | undefined {
    let [name, datatype] = ["", ""]
    const shape: Array<number> = []
    while (this.position < end) {
      const tag = this.byte()
      const fieldEnd = this.end(end)
      if (fieldEnd === undefined) return undefined
      if (tag === tagOf(1)) name = this.text(fieldEnd)
      else if (tag === tagOf(2)) datatype = this.text(fieldEnd)
      else if (tag === tagOf(3)) {
        while (this.position < fieldEnd) shape.push(this.varint())
        if (this.position !== fieldEnd || shape.some(Number.isNaN)) return undefined
      } else return undefined
      if (this.failed) return undefined
    }
    return { name, datatype, shape }
  }
}

class Writer {
  readonly #buffer: Uint8Array<ArrayBuffer>
  #offset: number

  constructor(length: number, offset: number) {
    this.#buffer = new Uint8Array(length)
    this.#offset = offset
  }

  open(tag: number, length: number): void {
    this.#buffer[this.#offset++] = tag
    this.varint(length)
  }

  /** A string field; none for an empty one, which is the default. */
  text(tag: number, text: string): void {
    if (text === "") return
    const length = utf8Length(text)
    this.open(tag, length)
    if (length === text.length) {
      for (let index = 0; index < length; index++) this.#buffer[this.#offset + index] = text.charCodeAt(index)
    } else encoder.encodeInto(text, this.#buffer.subarray(this.#offset))
    this.#offset += length
  }

  bytes(tag: number, bytes: Uint8Array): void {
    this.open(tag, bytes.length)
    this.#buffer.set(bytes, this.#offset)
    this.#offset += bytes.length
  }

  varint(value: number): void {
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#buffer[this.#offset++] = (rest % 0x80) | 0x80
    this.#buffer[this.#offset++] = rest
  }

  written(): Uint8Array<ArrayBuffer> {
    return this.#buffer
  }
}

const encoder = new TextEncoder()

const utf8Length = (text: string): number => {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) >= 0x80) return encoder.encode(text).length
  }
  return text.length
}

/** A tag, a length and what it says. */
const delimited = (length: number): number => 1 + varintLength(length) + length

const fieldLength = (text: string): number => (text === "" ? 0 : delimited(utf8Length(text)))

const varintLength = (value: number): number => {
  let length = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length += 1
  return length
}

const shapeLength = (shape: ReadonlyArray<number>): number => {
  let length = 0
  for (const extent of shape) length += varintLength(extent)
  return length
}
