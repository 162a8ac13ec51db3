/**
 * Unary gRPC calls as a target: one stream per call, many at a time on a connection. The checks of a reply are HTTP
 * status, content type, gRPC status, and a single complete message of the expected length. The content is not checked.
 */
import { isWhole, prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import { ResponseMessageReader } from "@nereid/core/internal/grpc/ResponseMessageReader"
import type { Address } from "../target/Address.ts"
import { RoundRobin } from "../target/RoundRobin.ts"
import {
  type FieldList,
  type Headers,
  Http2Connection,
  type Http2StreamHandler,
  refused,
} from "../http2/Http2Connection.ts"
import type { CallDeadline, Connection, Overload, Replies, Target } from "../target/Load.ts"
import * as ReplyLength from "../target/ReplyLength.ts"
import * as GrpcRequest from "./GrpcRequest.ts"
import * as ReplyProblem from "./ReplyProblem.ts"

/** Message to send, and the length of its reply; undefined for any length. */
export interface UnaryRequest {
  readonly message: Uint8Array
  readonly replyLength: number | undefined
}

/** Options of unary calls. `path` is the RPC with its service, such as `/inference.GRPCInferenceService/ModelInfer`. */
export interface UnaryOptions {
  readonly path: string
  readonly metadata?: Readonly<Record<string, string>>
  /** Requests, sent in turn. */
  readonly requests: readonly [UnaryRequest, ...ReadonlyArray<UnaryRequest>]
}

/** Makes a target of unary calls. The number of calls in flight on a connection is unlimited. */
export const target = (address: Address, { path, metadata = {}, requests }: UnaryOptions): Target => {
  const fields = GrpcRequest.fields(address, path, metadata)
  const [first, ...others] = requests.map(({ message, replyLength }): Prepared => ({
    body: [GrpcRequest.frame(message)],
    replyLength,
  }))
  if (first === undefined) throw new Error("There is a request. This is a bug.")
  const turns = new RoundRobin(first, others)
  const heads = new Heads()
  return {
    perConnection: Infinity,
    connect: async (replies) => new UnaryConnection(await Http2Connection.open(address, fields), turns, heads, replies),
  }
}

interface Prepared {
  readonly body: ReadonlyArray<Buffer>
  readonly replyLength: number | undefined
}

/** Cache of the last valid headers and trailers: equal objects are not checked again. */
class Heads {
  head: Headers | undefined
  end: Headers | undefined
}

class UnaryConnection implements Connection {
  readonly #http2: Http2Connection
  readonly #turns: RoundRobin<Prepared>
  readonly #heads: Heads
  readonly #replies: Replies

  constructor(http2: Http2Connection, turns: RoundRobin<Prepared>, heads: Heads, replies: Replies) {
    this.#http2 = http2
    this.#turns = turns
    this.#heads = heads
    this.#replies = replies
  }

  get accepts(): boolean {
    return this.#http2.accepts
  }

  send(startedAt: number, deadline?: CallDeadline): void {
    const { body, replyLength } = this.#turns.next()
    const reply = new UnaryReply(startedAt, replyLength, this.#heads, this.#replies, deadline)
    if (deadline === undefined) return void this.#http2.request(reply, body, true)
    const stream = this.#http2.request(reply, body, true, undefined, timeoutFields(deadline.told))
    deadline.cancel = () => stream?.cancel()
  }

  close(): void {
    this.#http2.close()
  }
}

const timeoutFields = (milliseconds: number | undefined): FieldList | undefined =>
  milliseconds === undefined ? undefined : ["grpc-timeout", `${milliseconds}m`]

class UnaryReply implements Http2StreamHandler {
  readonly #startedAt: number
  readonly #deadline: CallDeadline | undefined
  readonly #replyLength: number | undefined
  readonly #heads: Heads
  readonly #replies: Replies
  #hasHead = false
  /** Length of the message, in bytes; undefined until it is complete. */
  #length: number | undefined
  #hasMore = false
  /** Reads a message that arrives in parts. */
  #reader: ResponseMessageReader<Buffer> | undefined
  #problem: string | undefined
  #overload: Overload | undefined

  constructor(
    startedAt: number,
    replyLength: number | undefined,
    heads: Heads,
    replies: Replies,
    deadline: CallDeadline | undefined,
  ) {
    this.#startedAt = startedAt
    this.#deadline = deadline
    this.#replyLength = replyLength
    this.#heads = heads
    this.#replies = replies
  }

  onHeaders(headers: Headers, last: boolean): void {
    if (!this.#hasHead) {
      this.#hasHead = true
      if (headers !== this.#heads.head) {
        this.#problem = ReplyProblem.ofHead(headers)
        if (this.#problem === undefined && !last) this.#heads.head = headers
      }
    }
    if (last) this.#finish(headers)
  }

  onData(part: Buffer, last: boolean): void {
    if (this.#length === undefined && this.#reader === undefined && isWhole(part, Infinity)) {
      this.#length = part.length - prefixLength
    } else if (part.length > 0) this.#read(part)
    if (last) this.#replies.onReply(this.#startedAt, this.#problem ?? "the response has no trailers")
  }

  onAbort(reason: string, unseen: boolean): void {
    if (unseen) this.#replies.onUnseen(this.#startedAt, this.#deadline)
    else this.#replies.onReply(this.#startedAt, reason, reason === refused ? "refused" : undefined)
  }

  #read(part: Buffer): void {
    if (this.#length !== undefined) {
      this.#hasMore = true
      return
    }
    const reader = (this.#reader ??= new ResponseMessageReader(Infinity, Buffer.allocUnsafe, 0))
    reader.add(part)
    if (reader.next()) {
      this.#length = reader.length
      this.#hasMore = !reader.isBetween
    } else if (reader.refusal !== undefined)
      this.#problem ??= "the response is compressed, but the client accepts no compression"
  }

  #finish(trailers: Headers): void {
    let problem = this.#problem
    if (problem === undefined && trailers !== this.#heads.end) {
      problem = ReplyProblem.ofTrailers(trailers)
      if (problem === undefined) this.#heads.end = trailers
      else this.#overload = ReplyProblem.overload(trailers)
    }
    this.#replies.onReply(this.#startedAt, problem ?? this.#messageProblem(), this.#overload)
  }

  #messageProblem(): string | undefined {
    const length = this.#length
    if (length === undefined) {
      return `the response ends after ${this.#reader?.received ?? 0} of ${this.#reader?.length ?? 0} bytes`
    }
    return this.#hasMore
      ? "the response contains more than one message"
      : ReplyLength.problem(length, this.#replyLength)
  }
}
