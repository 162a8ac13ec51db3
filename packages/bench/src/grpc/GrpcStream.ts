/**
 * ModelStreamInfer as a target: one stream per connection, on which requests do not wait for replies. A reply is
 * matched to its request by id; of its tensors, only the length is checked. A request to a decoupled model ends with
 * its final reply.
 */
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import { ResponseMessageReader } from "@nereid/core/internal/grpc/ResponseMessageReader"
import type { Address } from "../target/Address.ts"
import { RoundRobin } from "../target/RoundRobin.ts"
import type { ClientStream } from "@nereid/http2/internal/client/ClientConnection"
import { type Headers, Http2Connection } from "../http2/Http2Connection.ts"
import type { Connection, Replies, Target } from "../target/Load.ts"
import * as ReplyLength from "../target/ReplyLength.ts"
import * as GrpcRequest from "./GrpcRequest.ts"
import * as ReplyProblem from "./ReplyProblem.ts"
import * as StreamReply from "./StreamReply.ts"

/** Placeholder in a message for the request id, with as many digits; replaced before sending. */
export const idPlaceholder = "00000000"

/** Bytes of a reply that are kept; its id and parameters are within them. */
const beginning = 4096

/** Size above which a message is sent without a copy, except for its beginning with the id. */
const copied = 4096

/** A message to send, and the expected length of its reply. */
export interface StreamRequest {
  /** A ModelInferRequest whose id is `idPlaceholder`. */
  readonly message: Uint8Array
  /** Offset of the id in the message. */
  readonly idOffset: number
  /** Bytes of the single reply; undefined for any length. */
  readonly replyLength: number | undefined
}

/** Options of streams. `metadata` is sent when a stream opens. */
export interface StreamOptions {
  readonly metadata?: Readonly<Record<string, string>>
  /** Requests, sent in turn. */
  readonly requests: readonly [StreamRequest, ...ReadonlyArray<StreamRequest>]
  /** Whether a request may have any number of replies. */
  readonly decoupled: boolean
  /** Whether replies have the ids of their requests. Without ids, replies are in the order of requests. */
  readonly hasIds: boolean
}

/** Path of the RPC, with its service. */
export const path = `${GrpcRequest.service}/ModelStreamInfer`

/** Makes a target with one stream per connection. The number of requests in flight on a stream is unlimited. */
export const target = (address: Address, options: StreamOptions): Target => {
  const fields = GrpcRequest.fields(address, path, options.metadata ?? {})
  const [first, ...others] = options.requests.map(prepare)
  if (first === undefined) throw new Error("There is a request. This is a bug.")
  const turns = new RoundRobin(first, others)
  return {
    perConnection: Infinity,
    connect: async (replies) =>
      new StreamConnection(await Http2Connection.open(address, fields), turns, options, replies),
  }
}

interface Prepared {
  /** Beginning of the message, with the placeholder of the id. */
  readonly head: Buffer
  readonly idOffset: number
  readonly rest: Buffer
  readonly replyLength: number | undefined
}

const prepare = ({ message, idOffset, replyLength }: StreamRequest): Prepared => {
  const bytes = GrpcRequest.frame(message)
  const start = prefixLength + idOffset
  const end = start + idPlaceholder.length
  if (bytes.toString("latin1", start, end) !== idPlaceholder) throw new Error("The id is elsewhere. This is a bug.")
  const split = bytes.length <= copied ? bytes.length : end
  return { head: bytes.subarray(0, split), idOffset: start, rest: bytes.subarray(split), replyLength }
}

interface Waiting {
  readonly startedAt: number
  readonly replyLength: number | undefined
}

class StreamConnection implements Connection {
  readonly #http2: Http2Connection
  readonly #turns: RoundRobin<Prepared>
  readonly #options: StreamOptions
  readonly #replies: Replies
  readonly #stream: ClientStream | undefined
  readonly #reader = new ResponseMessageReader<Buffer>(Infinity, Buffer.allocUnsafe, beginning)
  /** Requests in flight by id, in the order of sending. */
  readonly #waiting = new Map<number, Waiting>()
  #nextId = 0
  #hasHead = false
  #problem: string | undefined
  #hasEnded = false

  constructor(http2: Http2Connection, turns: RoundRobin<Prepared>, options: StreamOptions, replies: Replies) {
    this.#http2 = http2
    this.#turns = turns
    this.#options = options
    this.#replies = replies
    this.#stream = http2.request(
      {
        onHeaders: (headers, last) => this.#onHeaders(headers, last),
        onData: (part, last) => this.#onData(part, last),
        onAbort: (reason, unseen) => this.#end(reason, unseen),
      },
      [],
      false,
    )
  }

  get accepts(): boolean {
    return !this.#hasEnded && this.#http2.accepts
  }

  send(startedAt: number): void {
    const { head, idOffset, rest, replyLength } = this.#turns.next()
    const id = this.#nextId
    this.#nextId = (id + 1) % 10 ** idPlaceholder.length
    this.#waiting.set(id, { startedAt, replyLength })
    const bytes = Buffer.from(head)
    for (let index = idOffset + idPlaceholder.length - 1, left = id; left > 0; index--) {
      const next = Math.floor(left / 10)
      bytes[index] = 0x30 + left - next * 10
      left = next
    }
    this.#stream?.write(rest.length === 0 ? [bytes] : [bytes, rest], false)
  }

  close(): void {
    this.#hasEnded = true
    this.#waiting.clear()
    this.#http2.close()
  }

  #onHeaders(headers: Headers, last: boolean): void {
    if (!this.#hasHead) {
      this.#hasHead = true
      this.#problem = ReplyProblem.ofHead(headers)
    }
    if (last)
      this.#end(`the server ended the stream: ${this.#problem ?? ReplyProblem.ofTrailers(headers) ?? "OK"}`, false)
  }

  #onData(part: Buffer, last: boolean): void {
    // After another problem, the trailers or the end of the connection report it.
    if (this.#problem === undefined) this.#read(part)
    if (last || this.#problem !== undefined) this.#end(this.#problem ?? "the server ended the stream", false)
  }

  #read(part: Buffer): void {
    const reader = this.#reader
    reader.add(part)
    while (reader.next()) this.#onMessage(reader.bytes, reader.start, reader.end, reader.length)
    if (reader.refusal !== undefined) this.#problem = ReplyProblem.compressed
  }

  /** Reads a message of `length` bytes, of which only the beginning may be present. */
  #onMessage(bytes: Buffer, start: number, end: number, length: number): void {
    const reply = StreamReply.read(bytes, start, end)
    if (reply === undefined) return this.#end("the message is not a ModelStreamInferResponse", false)
    const [oldest = -1] = this.#options.hasIds ? [Number(reply.id || -1)] : this.#waiting.keys()
    const waiting = this.#waiting.get(oldest)
    if (waiting === undefined) {
      // A failed decoupled model may send further replies.
      if (!this.#options.decoupled)
        this.#end(`the response matches no request: its id is ${JSON.stringify(reply.id)}`, false)
      return
    }
    const failed = reply.error !== ""
    if (this.#options.decoupled && !failed && reply.final !== true) return
    this.#waiting.delete(oldest)
    const expected = this.#options.decoupled ? undefined : waiting.replyLength
    this.#replies.onReply(waiting.startedAt, failed ? reply.error : ReplyLength.problem(length, expected))
  }

  /** Ends the connection and all its requests. */
  #end(reason: string, unseen: boolean): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#http2.close()
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { startedAt } of waiting) {
      if (unseen) this.#replies.onUnseen(startedAt)
      else this.#replies.onReply(startedAt, reason)
    }
  }
}
