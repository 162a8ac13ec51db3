/**
 * Reads the HEADERS and CONTINUATION frames of a connection (RFC 9113, 6.2 and 8): a block begins a request or a
 * response, or is the trailers of one.
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import { Type } from "../frame/Frame.ts"
import { HeaderBlock, type Kind } from "../header/HeaderBlock.ts"
import type { Headers } from "../header/Headers.ts"
import { type FieldList, HeaderDecoder, HeaderError, type Similar } from "../hpack/HeaderDecoder.ts"
import { errorCost, type FloodBudget } from "./FloodBudget.ts"
import { PendingBlock } from "./PendingBlock.ts"
import type { Stream } from "./Stream.ts"
import type { Streams } from "./Streams.ts"

/** Size of the header fields of a message, as SETTINGS_MAX_HEADER_LIST_SIZE counts them. */
export const maxHeaderListSize = 65_536

export interface RequestEvents {
  /**
   * For a server: a request, with its fields as they came. Must set the handler of the stream. `isLast`: it has no
   * body. The number of streams is limited, but not how many of them a client resets at once: only the program knows
   * the cost of one (CVE-2023-44487).
   */
  readonly onStream: (stream: Stream, headers: Headers, isLast: boolean, fields: FieldList) => void
}

const readBlock = (fields: FieldList, isTooLarge: boolean, similar?: Similar<HeaderBlock>) =>
  new HeaderBlock(fields, isTooLarge, similar)

export class HeaderFrames {
  readonly #streams: Streams
  readonly #flood: FloodBudget
  readonly #maxConcurrentStreams: number
  readonly #events: RequestEvents
  readonly #decoder = new HeaderDecoder(maxHeaderListSize, readBlock)
  /** A block whose CONTINUATION frames are still to come. */
  #pending: PendingBlock | undefined
  /** Blocks that have begun with a frame that did not end them. */
  #begun = 0

  constructor(streams: Streams, flood: FloodBudget, maxConcurrentStreams: number, events: RequestEvents) {
    this.#streams = streams
    this.#flood = flood
    this.#maxConcurrentStreams = maxConcurrentStreams
    this.#events = events
  }

  /** Whether only a CONTINUATION frame may come next. */
  get isPending(): boolean {
    return this.#pending !== undefined
  }

  /** A number of the block whose CONTINUATION frames are still to come; 0 without one. */
  get unfinished(): number {
    return this.isPending ? this.#begun : 0
  }

  stop(): void {
    this.#pending = undefined
  }

  /** @throws ConnectionError */
  onHeaders(flags: number, id: number, payload: Buffer): void {
    if (id === 0) throw protocolError("HEADERS without a stream")
    const block = new PendingBlock(id, flags, payload)
    if (block.isComplete) return this.#onBlock(block)
    this.#pending = block
    this.#begun += 1
    block.own()
  }

  /** @throws ConnectionError */
  onContinuation(flags: number, id: number, payload: Buffer): void {
    const block = this.#pending
    if (block === undefined || block.stream !== id) throw protocolError("CONTINUATION without its header block")
    block.add(flags, payload)
    if (!block.isComplete) return
    this.#pending = undefined
    this.#onBlock(block)
  }

  #onBlock(block: PendingBlock): void {
    // Also for streams that are closed, because the block may change the table.
    const fields = this.#decode(block.bytes)
    const { stream: id, isLast } = block
    const streams = this.#streams
    if (block.dependency === id) throw protocolError("a stream depends on itself")
    const open = streams.get(id)
    if (open === undefined && streams.isServer && id > streams.lastOfPeer) return this.#onRequest(id, isLast, fields)
    const stream = open ?? streams.existing(id, Type.HEADERS)
    if (stream === undefined) return
    this.#flood.useful()
    if (stream.isRemoteEnded) return streams.streamError(stream, ErrorCode.STREAM_CLOSED)
    if (!streams.isServer && !stream.hasReceivedHead) return this.#onResponse(stream, isLast, fields)
    if (!isLast || !this.#isValid(stream, fields, "trailers") || stream.expected > 0) {
      if (!stream.isClosed) streams.streamError(stream, ErrorCode.PROTOCOL_ERROR)
      return
    }
    stream.isRemoteEnded = true
    streams.endRemote(stream, fields)
  }

  #decode(block: Uint8Array): HeaderBlock {
    try {
      return this.#decoder.decode(block)
    } catch (error) {
      if (error instanceof HeaderError) throw new ConnectionError(ErrorCode.COMPRESSION_ERROR, error.message)
      throw error
    }
  }

  #onRequest(id: number, isLast: boolean, fields: HeaderBlock): void {
    const streams = this.#streams
    if ((id & 1) === 0) throw protocolError("a client has opened a stream with an even id")
    // Sent before it saw our GOAWAY, which says that it is not processed.
    if (streams.isDraining) return this.#flood.spend(1)
    streams.lastOfPeer = id
    if (streams.size >= this.#maxConcurrentStreams) {
      this.#flood.spend(1)
      return streams.refuse(id, ErrorCode.REFUSED_STREAM)
    }
    const problem = requestProblem(fields, isLast)
    if (problem !== undefined) {
      this.#flood.spend(errorCost)
      return streams.refuse(id, problem)
    }
    this.#flood.useful()
    const stream = streams.open(id)
    stream.hasReceivedHead = true
    stream.isRemoteEnded = isLast
    if (fields.contentLength !== undefined && !isLast) stream.expected = fields.contentLength
    this.#events.onStream(stream, fields.headers, isLast, fields.fields)
    if (isLast && !stream.isClosed) streams.endRemote(stream, undefined)
  }

  #onResponse(stream: Stream, isLast: boolean, fields: HeaderBlock): void {
    if (!this.#isValid(stream, fields, "response")) return
    if (fields.status < 200) {
      if (isLast) return this.#streams.streamError(stream, ErrorCode.PROTOCOL_ERROR)
      return this.#flood.spend(1)
    }
    stream.hasReceivedHead = true
    if (isLast) stream.isRemoteEnded = true
    else stream.expected = fields.contentLength ?? -1
    stream.handler?.onHeaders(fields.headers, isLast)
    if (isLast) this.#streams.endRemote(stream, undefined)
  }

  /** Resets the stream if the fields are not valid. */
  #isValid(stream: Stream, fields: HeaderBlock, kind: Kind): boolean {
    if (fields.isTooLarge) this.#streams.streamError(stream, ErrorCode.ENHANCE_YOUR_CALM)
    else if (fields.problem(kind) === "") return true
    else this.#streams.streamError(stream, ErrorCode.PROTOCOL_ERROR)
    return false
  }
}

/** The code with which a request is refused; undefined if its head is valid. */
const requestProblem = (fields: HeaderBlock, isLast: boolean): number | undefined => {
  if (fields.isTooLarge) return ErrorCode.ENHANCE_YOUR_CALM
  if (fields.problem("request") !== "") return ErrorCode.PROTOCOL_ERROR
  const { contentLength } = fields
  return isLast && contentLength !== undefined && contentLength > 0 ? ErrorCode.PROTOCOL_ERROR : undefined
}

const protocolError = (message: string) => new ConnectionError(ErrorCode.PROTOCOL_ERROR, message)
