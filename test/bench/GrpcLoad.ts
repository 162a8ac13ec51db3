/**
 * Unary gRPC calls over a plain socket, several at a time on each connection. Its own client because node:http2's costs
 * more per call than its bare server does: with it, the load and not the server would be measured.
 */
import { Http2Connection, type Listener } from "./Http2Connection.ts"
import * as Http2Frame from "./Http2Frame.ts"
import type { Connection, OnReply, Target } from "./Load.ts"
import type { Request } from "./Request.ts"

/** `grpc-status: 0` as a literal, its name in Huffman code (RFC 7541, 5.2): how nghttp2, and so Node, writes it. */
const statusOk = Buffer.from("889acac8b21234da8f0130", "hex")

/** As many connections as several callers have that multiplex; `connections` of its own for callers that do not. */
export const target = (
  port: number,
  request: Request,
  replyBytes: number,
  connections = (concurrency: number) => Math.min(4, concurrency),
): Target => {
  const call: Call = { headers: Http2Frame.requestHeaders(port, request), body: request.body, replyBytes }
  return { connections, connect: (onReply) => GrpcConnection.open(port, call, onReply) }
}

interface Call {
  readonly headers: Buffer
  readonly body: Buffer
  /** Of the message with its prefix. */
  readonly replyBytes: number
}

interface Stream {
  readonly sentAt: number
  received: number
}

class GrpcConnection implements Connection, Listener {
  readonly #call: Call
  readonly #onReply: OnReply
  readonly #streams = new Map<number, Stream>()
  #http2: Http2Connection | undefined

  constructor(call: Call, onReply: OnReply) {
    this.#call = call
    this.#onReply = onReply
  }

  static async open(port: number, call: Call, onReply: OnReply): Promise<GrpcConnection> {
    const connection = new GrpcConnection(call, onReply)
    connection.#http2 = await Http2Connection.open(port, connection)
    return connection
  }

  send(): void {
    const sentAt = performance.now()
    const stream = this.#http2?.request(this.#call.headers, this.#call.body, true)
    if (stream !== undefined) this.#streams.set(stream, { sentAt, received: 0 })
  }

  isLost(): boolean {
    return this.#http2?.isLost() !== false
  }

  close(): void {
    this.#http2?.close()
  }

  onData(id: number, payload: Buffer, last: boolean): void {
    const stream = this.#streams.get(id)
    if (stream !== undefined) stream.received += payload.length
    if (last) this.#settle(id, "a reply without trailers")
  }

  onHeaders(stream: number, block: Buffer, last: boolean): void {
    if (last) this.#settle(stream, this.#problem(stream, block))
  }

  onReset(stream: number, code: number): void {
    this.#settle(stream, `the server reset the stream with code ${code}`)
  }

  onLost(why: string): void {
    for (const id of this.#streams.keys()) this.#settle(id, why)
  }

  #problem(stream: number, trailers: Buffer): string | undefined {
    if (!trailers.includes(statusOk)) return "a grpc-status that is not 0"
    const received = this.#streams.get(stream)?.received
    const { replyBytes } = this.#call
    return received === replyBytes ? undefined : `${received} bytes of reply, expected ${replyBytes}`
  }

  #settle(id: number, problem: string | undefined): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    this.#streams.delete(id)
    this.#http2?.forget(id)
    this.#onReply(performance.now() - stream.sentAt, problem)
  }
}
