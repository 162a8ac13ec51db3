/**
 * Unary gRPC calls as a target: each a stream of its own, many at a time on a connection. Of a reply it checks HTTP status,
 * content type and gRPC status, that it is one whole message, and how long that is; not what is in it.
 */
import type { Address } from "../target/Address.ts"
import { Cycle } from "../target/Cycle.ts"
import type { Headers } from "../http2/HeaderReader.ts"
import { Http2Connection, type StreamHandler } from "../http2/Http2Connection.ts"
import type { Connection, Replies, Target } from "../target/Load.ts"
import * as GrpcCall from "./GrpcRequest.ts"
import * as GrpcStatus from "./GrpcStatus.ts"
import { prefixLength } from "./ReplyMessages.ts"

/** A message to send, and how long its reply is; undefined where that may be any length. */
export interface UnaryRequest {
  readonly message: Uint8Array
  readonly replyLength: number | undefined
}

export interface UnaryOptions {
  readonly path: string
  readonly metadata?: Readonly<Record<string, string>>
  /** They take turns. */
  readonly requests: readonly [UnaryRequest, ...ReadonlyArray<UnaryRequest>]
}

export const target = (address: Address, { path, metadata = {}, requests }: UnaryOptions): Target => {
  const fields = GrpcCall.fields(address, path, metadata)
  const [first, ...others] = requests.map(({ message, replyLength }): Prepared => ({
    body: [GrpcCall.frame(message)],
    replyLength,
  }))
  if (first === undefined) throw new Error("There is a request. This is a bug.")
  const turns = new Cycle(first, others)
  const heads = new Heads()
  return {
    perConnection: Infinity,
    connect: async (replies) => new GrpcConnection(await Http2Connection.open(address, fields), turns, heads, replies),
  }
}

interface Prepared {
  readonly body: ReadonlyArray<Buffer>
  readonly replyLength: number | undefined
}

/** The heads and ends that replies have had last and that were all right: the same objects need no second look. */
class Heads {
  head: Headers | undefined
  end: Headers | undefined
}

class GrpcConnection implements Connection {
  readonly #http2: Http2Connection
  readonly #turns: Cycle<Prepared>
  readonly #heads: Heads
  readonly #replies: Replies

  constructor(http2: Http2Connection, turns: Cycle<Prepared>, heads: Heads, replies: Replies) {
    this.#http2 = http2
    this.#turns = turns
    this.#heads = heads
    this.#replies = replies
  }

  get accepts(): boolean {
    return this.#http2.accepts
  }

  send(startedAt: number): void {
    const { body, replyLength } = this.#turns.next()
    this.#http2.request(new UnaryCall(startedAt, replyLength, this.#heads, this.#replies), body, true)
  }

  close(): void {
    this.#http2.close()
  }
}

class UnaryCall implements StreamHandler {
  readonly #startedAt: number
  readonly #replyLength: number | undefined
  readonly #heads: Heads
  readonly #replies: Replies
  #hasHead = false
  /** Bytes of the body. */
  #received = 0
  /** Of the message, and before it whether it is compressed: from the first bytes of the body. */
  #announced = 0
  #problem: string | undefined

  constructor(startedAt: number, replyLength: number | undefined, heads: Heads, replies: Replies) {
    this.#startedAt = startedAt
    this.#replyLength = replyLength
    this.#heads = heads
    this.#replies = replies
  }

  onHeaders(headers: Headers, last: boolean): void {
    if (!this.#hasHead) {
      this.#hasHead = true
      if (headers !== this.#heads.head) {
        this.#problem = GrpcStatus.headProblem(headers)
        if (this.#problem === undefined && !last) this.#heads.head = headers
      }
    }
    if (last) this.#finish(headers)
  }

  onData(part: Buffer, last: boolean): void {
    const before = this.#received
    this.#received += part.length
    if (before === 0 && part.length >= prefixLength) {
      this.#announced = part.readUInt32BE(1)
      if (part[0] !== 0) this.#problem ??= "a compressed reply, which was not asked for"
    } else {
      for (let index = before; index < Math.min(prefixLength, this.#received); index++) {
        const byte = part[index - before] ?? 0
        if (index > 0) this.#announced = this.#announced * 256 + byte
        else if (byte !== 0) this.#problem ??= "a compressed reply, which was not asked for"
      }
    }
    if (last) this.#replies.onReply(this.#startedAt, this.#problem ?? "a reply without trailers")
  }

  onAbort(why: string, unseen: boolean): void {
    if (unseen) this.#replies.onUnseen(this.#startedAt)
    else this.#replies.onReply(this.#startedAt, why)
  }

  #finish(trailers: Headers): void {
    let problem = this.#problem
    if (problem === undefined && trailers !== this.#heads.end) {
      problem = GrpcStatus.problem(trailers)
      if (problem === undefined) this.#heads.end = trailers
    }
    this.#replies.onReply(this.#startedAt, problem ?? this.#lengthProblem())
  }

  #lengthProblem(): string | undefined {
    const length = this.#received - prefixLength
    if (length !== this.#announced) {
      return length < this.#announced
        ? `a reply that ends after ${Math.max(0, length)} of ${this.#announced} bytes`
        : "more than one message in a reply"
    }
    if (this.#replyLength === undefined || length === this.#replyLength) return undefined
    return `${length} bytes of reply, expected ${this.#replyLength}`
  }
}
