/** A server and a client on `@nereid/http2`. Everything happens before `receive` returns. */
import { Connection, type Headers, type Stream } from "../../packages/http2/src/connection/Connection.ts"
import { noEvents, noStreamEvents } from "../../packages/http2/src/connection/Peers.fixture.ts"
import { Message, Sent } from "./Seen.ts"
import { head, limits, payload, planOf, requestHead, requests, type Side, trailers } from "./Sides.ts"

/** Bytes that a connection may have ready at a time. */
const maxOutput = 2 ** 20

abstract class OwnSide implements Side {
  readonly received = new Map<number, Message>()
  readonly sent: Sent
  readonly connection: Connection

  constructor(role: "client" | "server") {
    this.sent = new Sent(role === "client")
    const maxConcurrentStreams = role === "client" ? 0 : limits.maxConcurrentStreams
    this.connection = new Connection(
      { role, ...limits, maxConcurrentStreams },
      { ...noEvents, onStream: (stream, headers, isLast) => this.onStream(stream, headers, isLast) },
      0,
    )
  }

  abstract onStream(stream: Stream, headers: Headers, isLast: boolean): void

  get isOver(): boolean {
    return this.connection.isOver
  }

  get reason(): string {
    return this.connection.error?.message ?? ""
  }

  receive(chunk: Buffer): void {
    this.connection.receive(chunk, 0)
    this.flush()
  }

  close(): void {
    this.connection.lost()
    if (this.connection.size > 0) throw new Error(`${this.connection.size} streams are left over`)
    if (this.sent.rest > 0) throw new Error("a frame was sent in part")
  }

  flush(): void {
    const { connection } = this
    while (connection.outputSize > 0) {
      if (connection.outputSize > maxOutput) throw new Error(`${connection.outputSize} bytes wait to be sent`)
      for (const piece of connection.take()) this.sent.read(piece)
      connection.pump()
    }
  }
}

export class OwnServer extends OwnSide {
  constructor() {
    super("server")
    this.flush()
  }

  override onStream(stream: Stream, headers: Headers, isLast: boolean): void {
    const { connection } = this
    const message = new Message()
    this.received.set(stream.id, message)
    message.head = Message.fields(headers)
    // The end of a request without a body comes after this, unless the stream has closed.
    if (isLast) message.end = "whole"
    const { when, size } = planOf(headers[":path"])
    const reply = () => {
      connection.head(stream, undefined, Object.entries(head).flat(), false)
      connection.data(stream, payload.subarray(0, size))
      connection.end(stream, { template: undefined, fields: Object.entries(trailers).flat() })
    }
    stream.handler = {
      ...noStreamEvents,
      onData: (part) => {
        message.add(part)
        return false
      },
      onTrailers: (fields) => (message.trailers = Message.fields(fields)),
      onEnd: () => {
        message.end = "whole"
        if (when === "whole") reply()
      },
      onClose: () => message.cut(),
    }
    if (when === "early") reply()
    else if (when === "reset") {
      message.end = "cut"
      connection.reset(stream, 8)
    }
  }
}

export class OwnClient extends OwnSide {
  constructor() {
    super("client")
    for (const size of requests) this.#request(size)
    this.flush()
  }

  override onStream(): void {
    throw new Error("a server has opened a stream")
  }

  #request(size: number): void {
    const { connection } = this
    const message = new Message()
    const handler = {
      ...noStreamEvents,
      onHeaders: (headers: Headers) => (message.head = Message.fields(headers)),
      onData: (part: Buffer) => {
        message.add(part)
        return false
      },
      onTrailers: (fields: Headers) => (message.trailers = Message.fields(fields)),
      onEnd: () => (message.end = "whole"),
      onClose: () => message.cut(),
    }
    const stream = connection.open(handler, undefined, Object.entries(requestHead).flat(), size === 0)
    this.received.set(stream.id, message)
    if (size === 0) return
    connection.data(stream, payload.subarray(0, size))
    connection.end(stream)
  }
}
