/**
 * The sending half of a client of HTTP/2 over a plain socket, and what it hears: streams, frames, windows. Of the answers
 * it hands on bytes; what they mean is the business of GrpcLoad.ts and StreamLoad.ts.
 */
import { once } from "node:events"
import { connect as connectSocket, type Socket } from "node:net"
import * as Http2Frame from "./Http2Frame.ts"

const { Flag, Type } = Http2Frame

export interface Listener {
  readonly onData: (stream: number, payload: Buffer, last: boolean) => void
  readonly onHeaders: (stream: number, block: Buffer, last: boolean) => void
  readonly onReset: (stream: number, code: number) => void
  readonly onLost: (why: string) => void
}

/** What is left to send of a body, when a window is closed. */
interface Waiting {
  readonly stream: number
  readonly body: Buffer
  readonly last: boolean
  offset: number
}

/** The windows that the preface opens are so wide that they are opened again at half of them only. */
const reopenAt = 2 ** 30

const headLength = 9

export class Http2Connection {
  readonly #socket: Socket
  readonly #listener: Listener
  #nextStream = 1
  #rest: Buffer = Buffer.alloc(0)
  #maxFrameSize = 16_384
  /** Bytes that the server is ready to take: of the connection, of a new stream, and of those on which some were sent. */
  #window = 65_535
  #streamWindow = 65_535
  readonly #windows = new Map<number, number>()
  #waiting: Array<Waiting> = []
  #received = 0

  private constructor(socket: Socket, listener: Listener) {
    this.#socket = socket
    this.#listener = listener
    socket.on("data", (chunk: Buffer) => this.#onData(chunk))
    socket.on("error", () => {})
    socket.on("close", () => listener.onLost("the server closed the connection"))
    socket.write(Http2Frame.preface)
  }

  static async open(port: number, listener: Listener): Promise<Http2Connection> {
    const socket = connectSocket({ port, host: "127.0.0.1", noDelay: true })
    await once(socket, "connect")
    return new Http2Connection(socket, listener)
  }

  /** Opens a stream with a HEADERS frame, whose stream is filled in here, and sends a body on it. */
  request(headers: Buffer, body: Buffer, last: boolean): number {
    const stream = this.#nextStream
    this.#nextStream += 2
    this.#windows.set(stream, this.#streamWindow)
    if (!this.#fits(stream, body)) {
      const head = Buffer.from(headers)
      head.writeUInt32BE(stream, 5)
      this.#socket.cork()
      this.#socket.write(head)
      this.send(stream, body, last)
      this.#socket.uncork()
      return stream
    }
    // One write of one small buffer.
    const bytes = Buffer.allocUnsafe(headers.length + headLength + body.length)
    bytes.set(headers)
    bytes.writeUInt32BE(stream, 5)
    this.#frame(bytes.subarray(headers.length), stream, body, last)
    this.#socket.write(bytes)
    return stream
  }

  /** More bytes on a stream; those that find no window are sent when there is one. */
  send(stream: number, body: Buffer, last: boolean): void {
    if (!this.#fits(stream, body)) {
      this.#waiting.push({ stream, body, last, offset: 0 })
      this.#pump()
      return
    }
    const bytes = Buffer.allocUnsafe(headLength + body.length)
    this.#frame(bytes, stream, body, last)
    this.#socket.write(bytes)
  }

  /** A stream that is over. */
  forget(stream: number): void {
    this.#windows.delete(stream)
  }

  isLost(): boolean {
    return this.#socket.destroyed
  }

  close(): void {
    this.#socket.destroy()
  }

  #fits(stream: number, { length }: Buffer): boolean {
    if (this.#waiting.length > 0 || length > this.#maxFrameSize || length > this.#window) return false
    return length <= (this.#windows.get(stream) ?? 0)
  }

  #frame(bytes: Buffer, stream: number, body: Buffer, last: boolean): void {
    Http2Frame.writeHead(bytes, body.length, Type.DATA, last ? Flag.END_STREAM : 0, stream)
    bytes.set(body, headLength)
    this.#take(stream, body.length)
  }

  #take(stream: number, length: number): void {
    this.#window -= length
    this.#windows.set(stream, (this.#windows.get(stream) ?? 0) - length)
  }

  #pump(): void {
    if (this.#waiting.length === 0) return
    this.#socket.cork()
    this.#waiting = this.#waiting.filter((waiting) => !this.#sendPart(waiting))
    this.#socket.uncork()
  }

  /** As much as the windows take, in views of the body; whether it was all. */
  #sendPart(waiting: Waiting): boolean {
    const { stream, body, last } = waiting
    while (waiting.offset < body.length) {
      const window = this.#windows.get(stream)
      // Reset meanwhile.
      if (window === undefined) return true
      const length = Math.min(body.length - waiting.offset, this.#maxFrameSize, this.#window, window)
      if (length <= 0) return false
      const end = waiting.offset + length
      const head = Buffer.allocUnsafe(headLength)
      Http2Frame.writeHead(head, length, Type.DATA, last && end === body.length ? Flag.END_STREAM : 0, stream)
      this.#socket.write(head)
      this.#socket.write(body.subarray(waiting.offset, end))
      this.#take(stream, length)
      waiting.offset = end
    }
    return true
  }

  #onData(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    // The requests that the replies of one read set off leave in one write.
    this.#socket.cork()
    this.#rest = Http2Frame.decode(bytes, (frame) => this.#onFrame(frame))
    this.#socket.uncork()
  }

  #onFrame({ type, flags, stream, payload }: Http2Frame.Frame): void {
    const last = (flags & Flag.END_STREAM) !== 0
    if (type === Type.DATA) {
      this.#received += payload.length
      if (this.#received >= reopenAt) {
        this.#socket.write(Http2Frame.windowUpdate(this.#received))
        this.#received = 0
      }
      this.#listener.onData(stream, payload, last)
    } else if (type === Type.HEADERS) {
      this.#listener.onHeaders(stream, payload, last)
    } else if (type === Type.RST_STREAM) {
      this.#listener.onReset(stream, payload.readUInt32BE())
    } else if (type === Type.SETTINGS) {
      if ((flags & Flag.ACK) === 0) this.#onSettings(payload)
    } else if (type === Type.PING) {
      if ((flags & Flag.ACK) === 0) this.#socket.write(Http2Frame.encode(Type.PING, Flag.ACK, 0, payload))
    } else if (type === Type.WINDOW_UPDATE) {
      const increment = payload.readUInt32BE()
      if (stream === 0) this.#window += increment
      else {
        const window = this.#windows.get(stream)
        if (window !== undefined) this.#windows.set(stream, window + increment)
      }
      this.#pump()
    } else {
      this.#socket.destroy()
      this.#listener.onLost(type === Type.GOAWAY ? "the server sent GOAWAY" : `an unexpected frame of type ${type}`)
    }
  }

  #onSettings(payload: Buffer): void {
    for (let offset = 0; offset < payload.length; offset += 6) {
      const value = payload.readUInt32BE(offset + 2)
      const setting = payload.readUInt16BE(offset)
      if (setting === Http2Frame.Setting.MAX_FRAME_SIZE) this.#maxFrameSize = value
      if (setting === Http2Frame.Setting.INITIAL_WINDOW_SIZE) {
        for (const [stream, window] of this.#windows) this.#windows.set(stream, window + value - this.#streamWindow)
        this.#streamWindow = value
      }
    }
    this.#socket.write(Http2Frame.encode(Type.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)))
    this.#pump()
  }
}
