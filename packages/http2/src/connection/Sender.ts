/**
 * Sends the messages of all streams of a connection: header blocks, and data within the windows of the peer (RFC 9113,
 * 5.2). Data that has no room waits with its stream; streams take turns.
 *
 *   head, data, end ─► room in the windows and the output ─► frames
 *        │ no                                                  ▲
 *        └─► queue of the stream ─► ready streams in turn ─────┘  a larger window, or an output that was written
 */
import { defaults, Flag, headLength, Type, writeHead } from "../frame/Frame.ts"
import type { Output } from "../frame/Output.ts"
import type { FieldList } from "../hpack/HeaderDecoder.ts"
import { HeaderEncoder, type HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import type { FloodBudget } from "./FloodBudget.ts"
import { noFields, noPayloads, type Stream, type Trailers } from "./Stream.ts"
import type { Streams } from "./Streams.ts"

/** Bytes that may wait to be written before data has to wait with its stream. */
const maxOutput = 256 * 1024

/** Bytes of one stream before the next one has its turn. */
const turnBytes = 64 * 1024

/** Bytes of a message that is written in one piece, with its head and its trailers. */
const smallMessage = 4096

/** A frame of so many bytes may need window updates. Smaller ones do not, if a window has cut them. */
const usefulFrame = 1024

/** Bytes that may wait with a stream before its writer has to wait. */
const maxQueued = 64 * 1024

export class Sender {
  readonly encoder = new HeaderEncoder()
  /** Bytes that all streams together may send. */
  window: number = defaults.window
  maxFrameSize: number = defaults.frameSize
  /** Whether the output has to wait for the peer to read. */
  isBlocked = false
  readonly #output: Output
  readonly #streams: Streams
  readonly #flood: FloodBudget
  /** Streams that can send, as a list. */
  #firstReady: Stream | undefined
  #lastReady: Stream | undefined

  constructor(output: Output, streams: Streams, flood: FloodBudget) {
    this.#output = output
    this.#streams = streams
    this.#flood = flood
  }

  head(stream: Stream, template: HeaderTemplate | undefined, fields: FieldList, isLast: boolean): void {
    this.#block(stream.id, this.encoder.encode(template, fields), isLast ? Flag.END_STREAM : 0)
    if (isLast) this.#streams.endLocal(stream)
  }

  /** Returns false if the writer should wait for `onDrain`. The bytes must not change any more. */
  data(stream: Stream, bytes: Uint8Array): boolean {
    if (bytes.length === 0) return true
    if (stream.queue === noPayloads) stream.queue = [bytes]
    else stream.queue.push(bytes)
    stream.queued += bytes.length
    if (!stream.isReady && this.#hasRoom) this.#write(stream)
    this.#ready(stream)
    if (stream.queued <= maxQueued) return true
    stream.needsDrain = true
    return false
  }

  /** Ends the message behind its data. */
  end(stream: Stream, trailers: Trailers | undefined): void {
    stream.isEnding = true
    stream.trailers = trailers
    if (stream.queued === 0) this.#finish(stream, false)
  }

  /** The same as a head, data and an end with trailers, and faster for a small message. */
  message(stream: Stream, head: HeaderTemplate, body: Uint8Array, trailers: HeaderTemplate): void {
    const { length } = body
    if (length > smallMessage || length === 0 || !this.#fits(stream, length)) {
      this.head(stream, head, noFields, false)
      stream.isEnding = true
      stream.trailers = { template: trailers, fields: noFields }
      if (length === 0) this.#finish(stream, false)
      else this.data(stream, body)
      return
    }
    const { id } = stream
    const output = this.#output
    const headBlock = this.encoder.encode(head)
    const headBytes = headBlock.length
    const at = output.reserve(2 * headLength + headBytes + length)
    const { bytes } = output
    writeHead(bytes, at, headBytes, Type.HEADERS, Flag.END_HEADERS, id)
    set(bytes, headBlock, at + headLength)
    const data = at + headLength + headBytes
    writeHead(bytes, data, length, Type.DATA, 0, id)
    bytes.set(body, data + headLength)
    stream.sendWindow -= length
    this.window -= length
    this.#block(id, this.encoder.encode(trailers), Flag.END_STREAM)
    this.#streams.endLocal(stream)
  }

  /** The stream may send more. */
  widened(stream: Stream): void {
    this.#ready(stream)
  }

  /** Sends what has room now. */
  pump(): void {
    while (this.#hasRoom && this.window > 0) {
      const stream = this.#firstReady
      if (stream === undefined) return
      this.#firstReady = stream.nextReady
      if (this.#firstReady === undefined) this.#lastReady = undefined
      stream.nextReady = undefined
      stream.isReady = false
      if (stream.isClosed) continue
      this.#write(stream)
      this.#ready(stream)
    }
  }

  get #hasRoom(): boolean {
    return !this.isBlocked && this.#output.size < maxOutput
  }

  #fits(stream: Stream, length: number): boolean {
    return (
      this.#hasRoom &&
      stream.queued === 0 &&
      length <= stream.sendWindow &&
      length <= this.window &&
      length <= this.maxFrameSize
    )
  }

  #ready(stream: Stream): void {
    if (stream.isReady || stream.isClosed || stream.queued === 0 || stream.sendWindow <= 0) return
    stream.isReady = true
    if (this.#lastReady === undefined) this.#firstReady = stream
    else this.#lastReady.nextReady = stream
    this.#lastReady = stream
  }

  /** Sends data of a stream, as much as its turn and the windows allow. */
  #write(stream: Stream): void {
    let turn = turnBytes
    while (stream.queued > 0) {
      const part = stream.queue[0] ?? noBytes
      const left = part.length - stream.position
      const length = Math.min(left, stream.sendWindow, this.window, this.maxFrameSize, turn)
      if (length <= 0) return
      const isLast = length === stream.queued && stream.isEnding && stream.trailers === undefined
      const payload = length === part.length ? part : part.subarray(stream.position, stream.position + length)
      this.#output.frame(Type.DATA, isLast ? Flag.END_STREAM : 0, stream.id, payload)
      stream.sendWindow -= length
      this.window -= length
      stream.queued -= length
      stream.position += length
      turn -= length
      if (length === left || length >= usefulFrame) this.#flood.useful()
      if (length < left) continue
      if (stream.queue.length === 1) stream.queue = noPayloads
      else stream.queue.shift()
      stream.position = 0
    }
    if (stream.isEnding) return this.#finish(stream, stream.trailers === undefined)
    if (!stream.needsDrain) return
    stream.needsDrain = false
    stream.handler?.onDrain()
  }

  /** Everything but the end was sent, or that as well. */
  #finish(stream: Stream, isSent: boolean): void {
    const { id, trailers } = stream
    if (trailers !== undefined) {
      this.#block(id, this.encoder.encode(trailers.template, trailers.fields), Flag.END_STREAM)
    } else if (!isSent) this.#output.frame(Type.DATA, Flag.END_STREAM, id, noBytes)
    this.#streams.endLocal(stream)
  }

  #block(id: number, block: Uint8Array, flags: number): void {
    const { length } = block
    if (length > this.maxFrameSize) return this.#longBlock(id, block, flags)
    const output = this.#output
    const at = output.reserve(headLength + length)
    writeHead(output.bytes, at, length, Type.HEADERS, flags | Flag.END_HEADERS, id)
    set(output.bytes, block, at + headLength)
  }

  #longBlock(id: number, block: Uint8Array, flags: number): void {
    for (let start = 0; start < block.length; start += this.maxFrameSize) {
      const part = block.subarray(start, start + this.maxFrameSize)
      const isLast = start + part.length === block.length
      const type = start === 0 ? Type.HEADERS : Type.CONTINUATION
      this.#output.frame(type, (start === 0 ? flags : 0) | (isLast ? Flag.END_HEADERS : 0), id, part)
    }
  }
}

const noBytes = new Uint8Array()

/** Copies a few bytes, for which a loop is faster than a call out of JavaScript. */
const set = (target: Uint8Array, source: Uint8Array, offset: number): void => {
  const { length } = source
  if (length > 64) return target.set(source, offset)
  for (let index = 0; index < length; index++) target[offset + index] = source[index] ?? 0
}
