/**
 * Unary gRPC calls over a plain socket, several at a time on each connection. Its own client because node:http2's costs
 * more per call than its bare server does: with it, the load and not the server would be measured.
 */
import { once } from "node:events"
import { connect as connectSocket, type Socket } from "node:net"
import * as Http2Frame from "./Http2Frame.ts"
import type { Connection, OnReply, Target } from "./Load.ts"
import type { Request } from "./Request.ts"

const { Flag, Type } = Http2Frame

/** `grpc-status: 0` as a literal, its name in Huffman code (RFC 7541, 5.2): how nghttp2, and so Node, writes it. */
const statusOk = Buffer.from("889acac8b21234da8f0130", "hex")

/** As many connections as several callers have that multiplex; `connections` of its own for callers that do not. */
export const target = (
  port: number,
  request: Request,
  replyBytes: number,
  connections = (concurrency: number) => Math.min(4, concurrency),
): Target => {
  const authority = `127.0.0.1:${port}`
  const block = Http2Frame.headerBlock({
    ":method": "POST",
    ":scheme": "http",
    ":path": request.path,
    ":authority": authority,
    ...request.headers,
  })
  const headers = Http2Frame.encode(Type.HEADERS, Flag.END_HEADERS, 0, block)
  const data = Http2Frame.encode(Type.DATA, Flag.END_STREAM, 0, request.body)
  if (request.body.length > 16_384)
    throw new Error(`a body of ${request.body.length} bytes does not fit into one frame`)
  return {
    connections,
    connect: async (onReply) => {
      const socket = connectSocket({ port, host: "127.0.0.1", noDelay: true })
      await once(socket, "connect")
      return new GrpcConnection(socket, { headers, data, replyBytes }, onReply)
    },
  }
}

interface Call {
  readonly headers: Buffer
  readonly data: Buffer
  /** Of the message with its prefix. */
  readonly replyBytes: number
}

interface Stream {
  readonly sentAt: number
  received: number
}

class GrpcConnection implements Connection {
  readonly #socket: Socket
  readonly #call: Call
  readonly #onReply: OnReply
  readonly #streams = new Map<number, Stream>()
  #nextStream = 1
  #rest: Buffer = Buffer.alloc(0)
  /** Bytes that the server is ready to take. The closed loop stays far below; it is counted to be sure. */
  #window = 65_535

  constructor(socket: Socket, call: Call, onReply: OnReply) {
    this.#socket = socket
    this.#call = call
    this.#onReply = onReply
    socket.on("data", (chunk: Buffer) => this.#onData(chunk))
    socket.on("error", () => {})
    socket.on("close", () => this.#lose("the server closed the connection"))
    socket.write(Http2Frame.preface)
  }

  send(): void {
    const { headers, data } = this.#call
    const stream = this.#nextStream
    this.#nextStream += 2
    this.#window -= data.length - 9
    if (this.#window < 0) throw new Error("The server's window is exhausted. This is a bug of the load.")
    const bytes = Buffer.allocUnsafe(headers.length + data.length)
    bytes.set(headers)
    bytes.set(data, headers.length)
    bytes.writeUInt32BE(stream, 5)
    bytes.writeUInt32BE(stream, headers.length + 5)
    this.#streams.set(stream, { sentAt: performance.now(), received: 0 })
    this.#socket.write(bytes)
  }

  isLost(): boolean {
    return this.#socket.destroyed
  }

  close(): void {
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    // The requests that the replies of one read set off leave in one write.
    this.#socket.cork()
    this.#rest = Http2Frame.decode(bytes, (frame) => this.#onFrame(frame))
    this.#socket.uncork()
  }

  #onFrame({ type, flags, stream, payload }: Http2Frame.Frame): void {
    if (type === Type.DATA) {
      const open = this.#streams.get(stream)
      if (open !== undefined) open.received += payload.length
      if ((flags & Flag.END_STREAM) !== 0) this.#settle(stream, "a reply without trailers")
    } else if (type === Type.HEADERS) {
      if ((flags & Flag.END_STREAM) !== 0) this.#settle(stream, this.#problem(stream, payload))
    } else if (type === Type.RST_STREAM) {
      this.#settle(stream, `the server reset the stream with code ${payload.readUInt32BE()}`)
    } else if (type === Type.SETTINGS) {
      if ((flags & Flag.ACK) === 0) this.#socket.write(Http2Frame.encode(Type.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)))
    } else if (type === Type.PING) {
      if ((flags & Flag.ACK) === 0) this.#socket.write(Http2Frame.encode(Type.PING, Flag.ACK, 0, payload))
    } else if (type === Type.WINDOW_UPDATE) {
      if (stream === 0) this.#window += payload.readUInt32BE()
    } else {
      this.#lose(type === Type.GOAWAY ? "the server sent GOAWAY" : `an unexpected frame of type ${type}`)
    }
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
    this.#onReply(performance.now() - stream.sentAt, problem)
  }

  #lose(why: string): void {
    this.#socket.destroy()
    for (const id of this.#streams.keys()) this.#settle(id, why)
  }
}
