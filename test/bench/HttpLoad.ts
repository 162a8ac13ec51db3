/**
 * HTTP/1.1 requests over a plain socket, one at a time. Its own client so that the load costs a fraction of what the
 * servers do: it reads of a reply only its status and its length, and knows no chunked bodies.
 */
import { once } from "node:events"
import { connect as connectSocket, type Socket } from "node:net"
import type { Connection, OnReply, Target } from "./Load.ts"
import type { Request } from "./Request.ts"

export const target = (port: number, request: Request, replyBytes: number): Target => {
  const head = [
    `POST ${request.path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `content-length: ${request.body.length}`,
    ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
  ]
  const bytes = Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), request.body])
  return {
    connections: (concurrency) => concurrency,
    connect: async (onReply) => {
      const socket = connectSocket({ port, host: "127.0.0.1", noDelay: true })
      await once(socket, "connect")
      return new HttpConnection(socket, bytes, replyBytes, onReply)
    },
  }
}

class HttpConnection implements Connection {
  readonly #socket: Socket
  readonly #request: Buffer
  readonly #replyBytes: number
  readonly #onReply: OnReply
  /** The beginning of a reply that ends before its headers do. */
  #head: Buffer = empty
  /** Bytes of the body that are still to come, once its length is known. */
  #left: number | undefined
  #problem: string | undefined
  /** When the request that is under way was sent. */
  #sentAt: number | undefined

  constructor(socket: Socket, request: Buffer, replyBytes: number, onReply: OnReply) {
    this.#socket = socket
    this.#request = request
    this.#replyBytes = replyBytes
    this.#onReply = onReply
    socket.on("data", (chunk: Buffer) => this.#onData(chunk))
    socket.on("error", () => {})
    socket.on("close", () => this.#settle("the server closed the connection"))
  }

  send(): void {
    this.#sentAt = performance.now()
    this.#socket.write(this.#request)
  }

  isLost(): boolean {
    return this.#socket.destroyed
  }

  close(): void {
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    if (this.#left === undefined) {
      const bytes = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk])
      const headEnd = bytes.indexOf("\r\n\r\n")
      if (headEnd < 0) this.#head = bytes
      else this.#onHead(bytes.toString("latin1", 0, headEnd), bytes.length - headEnd - 4)
    } else {
      this.#left -= chunk.length
    }
    if (this.#left === undefined || this.#left > 0) return
    this.#left = undefined
    this.#settle(this.#problem)
  }

  #onHead(head: string, received: number): void {
    this.#head = empty
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1])
    this.#left = (Number.isNaN(length) ? 0 : length) - received
    if (!head.startsWith("HTTP/1.1 200 ")) this.#problem = head.slice(0, head.indexOf("\r\n"))
    else if (length !== this.#replyBytes) this.#problem = `${length} bytes of reply, expected ${this.#replyBytes}`
    else this.#problem = undefined
  }

  #settle(problem: string | undefined): void {
    const sentAt = this.#sentAt
    if (sentAt === undefined) return
    this.#sentAt = undefined
    this.#onReply(performance.now() - sentAt, problem)
  }
}

const empty = Buffer.alloc(0)
