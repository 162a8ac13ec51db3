/**
 * HTTP/1.1 requests as a target: one at a time on a connection. The checks of a reply are its status and, if known, the
 * length of its body. The content is not checked.
 */
import type { Socket } from "node:net"
import * as Address from "../target/Address.ts"
import { RoundRobin } from "../target/RoundRobin.ts"
import type { CallDeadline, Connection, Replies, Target } from "../target/Load.ts"
import * as ReplyLength from "../target/ReplyLength.ts"
import * as HttpRequest from "./HttpRequest.ts"
import { type HttpReply, ReplyReader } from "./ReplyReader.ts"

/** A request to send, and the expected length of its reply. */
export interface InferRequest {
  readonly request: HttpRequest.HttpRequest
  /** Bytes of the reply's body; undefined for any length. */
  readonly replyLength: number | undefined
}

/** Makes a target of HTTP/1.1 requests, which are sent in turn. A connection has one request in flight. */
export const target = (
  address: Address.Address,
  requests: readonly [InferRequest, ...ReadonlyArray<InferRequest>],
): Target => {
  const [first, ...others] = requests.map(({ request, replyLength }): Prepared => ({
    bytes: HttpRequest.encode(address, request),
    timed: HttpRequest.encodeTimed(address, request),
    replyLength,
  }))
  if (first === undefined) throw new Error("There is a request. This is a bug.")
  const turns = new RoundRobin(first, others)
  return {
    perConnection: 1,
    connect: async (replies) => new HttpConnection(await Address.connect(address, "http/1.1"), turns, replies),
  }
}

interface Prepared {
  readonly bytes: Buffer
  /** The same with a header for the time that is left. */
  readonly timed: HttpRequest.TimedRequest
  readonly replyLength: number | undefined
}

class HttpConnection implements Connection {
  readonly #socket: Socket
  readonly #turns: RoundRobin<Prepared>
  readonly #replies: Replies
  readonly #reader = new ReplyReader(false, (reply) => this.#onReply(reply))
  /** Scheduled time of the request in flight. */
  #startedAt: number | undefined
  #deadline: CallDeadline | undefined
  #replyLength: number | undefined
  /** Whether the connection has received a reply. */
  #hasReplied = false
  #hasEnded = false

  constructor(socket: Socket, turns: RoundRobin<Prepared>, replies: Replies) {
    this.#socket = socket
    this.#turns = turns
    this.#replies = replies
    socket.on("data", (chunk: Buffer) => this.#onData(chunk))
    socket.on("error", (error) => this.#lose(`the connection was lost: ${error.message}`))
    socket.on("end", () => this.#lose("the server closed the connection"))
    socket.on("close", () => this.#lose("the server closed the connection"))
  }

  get accepts(): boolean {
    return !this.#hasEnded
  }

  send(startedAt: number, deadline?: CallDeadline): void {
    const { bytes, timed, replyLength } = this.#turns.next()
    this.#startedAt = startedAt
    this.#deadline = deadline
    this.#replyLength = replyLength
    if (deadline !== undefined) deadline.cancel = () => this.close()
    const left = deadline?.told
    this.#socket.write(left === undefined ? bytes : HttpRequest.tell(timed, left))
  }

  close(): void {
    this.#hasEnded = true
    this.#startedAt = undefined
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    if (this.#startedAt === undefined) return this.#lose("the server sent a response without a request")
    const problem = this.#reader.read(chunk)
    if (problem !== undefined) this.#lose(problem)
  }

  #onReply(reply: HttpReply): void {
    const startedAt = this.#startedAt
    if (startedAt === undefined) return this.#lose("the server sent a response without a request")
    this.#startedAt = undefined
    this.#hasReplied = true
    // If a refusal comes before the request is sent completely, the rest would precede the next request.
    if (!reply.keepsAlive || this.#socket.writableLength > 0) {
      this.#hasEnded = true
      this.#socket.destroy()
    }
    const problem = HttpRequest.problem(reply) ?? ReplyLength.problem(reply.length, this.#replyLength)
    this.#replies.onReply(startedAt, problem, HttpRequest.overload(reply))
  }

  #lose(reason: string): void {
    if (this.#hasEnded) return
    // Comes first, because the end of the connection may complete the reply.
    if (this.#reader.end()) return
    this.#hasEnded = true
    this.#socket.destroy()
    const startedAt = this.#startedAt
    if (startedAt === undefined) return
    this.#startedAt = undefined
    // The server may close the connection while the next request is on its way.
    if (this.#hasReplied && this.#reader.idle) this.#replies.onUnseen(startedAt, this.#deadline)
    else this.#replies.onReply(startedAt, reason)
  }
}
