/**
 * One gRPC stream per connection, on which messages are sent without waiting for the answers to those before: each answer
 * sends the next. The answers are as many, in order and of one size, which their prefixes must say.
 */
import { Http2Connection, type Listener } from "./Http2Connection.ts"
import * as Http2Frame from "./Http2Frame.ts"
import type { Connection, OnReply, Target } from "./Load.ts"
import type { Request } from "./Request.ts"

export const target = (port: number, request: Request, replyBytes: number): Target => {
  const headers = Http2Frame.requestHeaders(port, request)
  return {
    connections: (concurrency) => Math.min(4, concurrency),
    connect: async (onReply) => {
      const connection = new StreamConnection(request.body, replyBytes, onReply)
      await connection.open(port, headers)
      return connection
    },
  }
}

/** Compressed flag and length. */
const prefixLength = 5

class StreamConnection implements Connection, Listener {
  readonly #message: Buffer
  readonly #replyBytes: number
  readonly #onReply: OnReply
  readonly #sentAt: Array<number> = []
  #http2: Http2Connection | undefined
  #stream = 0
  /** Of the answer that has begun. */
  #received = 0

  constructor(message: Buffer, replyBytes: number, onReply: OnReply) {
    this.#message = message
    this.#replyBytes = replyBytes
    this.#onReply = onReply
  }

  async open(port: number, headers: Buffer): Promise<void> {
    this.#http2 = await Http2Connection.open(port, this)
    this.#stream = this.#http2.request(headers, Buffer.alloc(0), false)
  }

  send(): void {
    this.#sentAt.push(performance.now())
    this.#http2?.send(this.#stream, this.#message, false)
  }

  isLost(): boolean {
    return this.#http2?.isLost() !== false
  }

  close(): void {
    this.#http2?.close()
  }

  onData(_: number, payload: Buffer, last: boolean): void {
    for (let offset = 0; offset < payload.length;) {
      if (this.#received === 0 && payload.length - offset >= prefixLength) {
        const length = payload.readUInt32BE(offset + 1) + prefixLength
        if (length !== this.#replyBytes) return this.#lose(`${length} bytes of reply, expected ${this.#replyBytes}`)
      }
      const part = Math.min(this.#replyBytes - this.#received, payload.length - offset)
      offset += part
      this.#received += part
      if (this.#received < this.#replyBytes) break
      this.#received = 0
      this.#settle(undefined)
    }
    if (last) this.#lose("the server ended the stream")
  }

  onHeaders(_: number, __: Buffer, last: boolean): void {
    if (last) this.#lose("the server ended the stream")
  }

  onReset(_: number, code: number): void {
    this.#lose(`the server reset the stream with code ${code}`)
  }

  onLost(why: string): void {
    while (this.#sentAt.length > 0) this.#settle(why)
  }

  #lose(why: string): void {
    this.close()
    this.onLost(why)
  }

  #settle(problem: string | undefined): void {
    const sentAt = this.#sentAt.shift()
    if (sentAt !== undefined) this.#onReply(performance.now() - sentAt, problem)
  }
}
