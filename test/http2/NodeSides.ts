/** A server and a client on node:http2. What some bytes cause has happened after some turns of the event loop. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type Http2Stream,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2"
import { Message, Sent } from "./Seen.ts"
import {
  head,
  limits,
  payload,
  planOf,
  requestHead,
  requests,
  settingsOfNode,
  type Side,
  trailers,
  Wire,
} from "./Sides.ts"

abstract class NodeSide implements Side {
  readonly received = new Map<number, Message>()
  readonly sent: Sent
  readonly reason = ""
  readonly wire: Wire
  abstract readonly session: ServerHttp2Session | ClientHttp2Session
  #isOver = false

  constructor(isClient: boolean) {
    this.sent = new Sent(isClient)
    this.wire = new Wire(this.sent)
  }

  watch(session: ServerHttp2Session | ClientHttp2Session): void {
    session.on("error", () => (this.#isOver = true))
    session.on("close", () => (this.#isOver = true))
  }

  get isOver(): boolean {
    return this.#isOver || this.session.destroyed || (this.sent.goaway ?? 0) !== 0
  }

  receive(chunk: Buffer): void {
    if (!this.wire.destroyed) this.wire.push(chunk)
  }

  close(): void {
    this.session.destroy()
    this.wire.destroy()
  }

  /** Records the message of the peer on a stream. */
  read(message: Message, stream: Http2Stream, onEnd: () => void): void {
    stream.on("error", () => {})
    stream.on("data", (part: Buffer) => message.add(part))
    stream.on("trailers", (fields) => (message.trailers = Message.fields(fields)))
    stream.on("end", () => {
      // Comes for some streams that were reset, too.
      if (stream.aborted || stream.rstCode !== 0 || message.end !== "open") return
      message.end = "whole"
      onEnd()
    })
    stream.on("aborted", () => message.cut())
    stream.on("close", () => message.cut())
  }
}

export class NodeServer extends NodeSide {
  override readonly session: ServerHttp2Session

  constructor() {
    super(false)
    const { settings, ...options } = settingsOfNode
    const { maxConcurrentStreams } = limits
    this.session = performServerHandshake(this.wire, { ...options, settings: { ...settings, maxConcurrentStreams } })
    this.session.setLocalWindowSize(limits.connectionWindow)
    this.session.on("stream", (stream, headers) => this.#onStream(stream as ServerHttp2Stream, headers))
    this.watch(this.session)
  }

  #onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const message = new Message()
    this.received.set(stream.id ?? 0, message)
    message.head = Message.fields(headers)
    const { when, size } = planOf(headers[":path"])
    const reply = () => {
      if (stream.destroyed || stream.closed) return
      stream.on("wantTrailers", () => stream.sendTrailers(trailers))
      stream.respond(head, { waitForTrailers: true })
      stream.end(payload.subarray(0, size))
    }
    this.read(message, stream, () => {
      if (when === "whole") reply()
    })
    if (when === "early") reply()
    else if (when === "reset") {
      message.end = "cut"
      stream.close(8)
    }
  }
}

export class NodeClient extends NodeSide {
  override readonly session: ClientHttp2Session

  constructor() {
    super(true)
    this.session = connect("http://localhost", { ...settingsOfNode, createConnection: () => this.wire })
    this.session.on("connect", () => this.session.setLocalWindowSize(limits.connectionWindow))
    this.watch(this.session)
    for (const [index, size] of requests.entries()) this.#request(2 * index + 1, size)
  }

  #request(id: number, size: number): void {
    const message = new Message()
    this.received.set(id, message)
    const stream: ClientHttp2Stream = this.session.request(requestHead, { endStream: size === 0 })
    stream.on("response", (headers) => (message.head = Message.fields(headers)))
    this.read(message, stream, () => {})
    if (size > 0) stream.end(payload.subarray(0, size))
  }
}
