/**
 * Connections without sockets for tests: one side with the frames of a test as its peer, or two sides whose bytes are
 * cut anywhere on their way.
 */
import * as Frame from "../frame/Frame.ts"
import { Flag, Type } from "../frame/Frame.ts"
import { FrameReader } from "../frame/FrameReader.ts"
import type { ConnectionError } from "../frame/ErrorCode.ts"
import { type FieldList, HeaderDecoder } from "../hpack/HeaderDecoder.ts"
import { HeaderEncoder, HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import {
  Connection,
  type ConnectionEvents,
  type ConnectionOptions,
  type Headers,
  type Stream,
  type StreamHandler,
} from "./Connection.ts"

export const requestTemplate = new HeaderTemplate([
  ":method",
  "POST",
  ":scheme",
  "http",
  ":path",
  "/echo",
  ":authority",
  "localhost",
])

export const okHead = new HeaderTemplate([":status", "200"])

export const okTrailers = new HeaderTemplate(["grpc-status", "0"])

const ignore = () => {}

/** Handles no event. */
export const noEvents: ConnectionEvents = {
  onStream: ignore,
  onOpen: ignore,
  onPing: ignore,
  onPingAcknowledged: ignore,
  onProbeAcknowledged: ignore,
  onSettingsAcknowledged: ignore,
  onSettings: ignore,
  onGoaway: ignore,
  onStreamClosed: ignore,
  onHeld: ignore,
  onOutput: ignore,
  onFinished: ignore,
}

export const noStreamEvents: StreamHandler = {
  onHeaders: ignore,
  onData: () => true,
  onTrailers: ignore,
  onEnd: ignore,
  onDrain: ignore,
  onSent: ignore,
  onClose: ignore,
}

const standard = { streamWindow: 65_535, connectionWindow: 65_535, maxConcurrentStreams: 100 }

/** A frame that a connection has sent, with the fields of a header block. */
export interface SentFrame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
  readonly fields: FieldList
}

/** Records what happens to the streams of a connection. */
export class Recorder {
  readonly events: Array<string> = []
  readonly streams: Array<Stream> = []
  readonly headers: Array<Headers> = []
  finished: { readonly error: ConnectionError | undefined } | undefined
  held = 0
  pings = 0

  handler(id: number | string): StreamHandler {
    return {
      onHeaders: (headers, isLast) => this.events.push(`${id} ${headers[":status"]}${isLast ? " end" : ""}`),
      onData: (part) => this.events.push(`${id} data ${part.length}`) > 0,
      onTrailers: () => this.events.push(`${id} trailers`),
      onEnd: () => this.events.push(`${id} end`),
      onDrain: () => this.events.push(`${id} drain`),
      onSent: () => {},
      onClose: (code) => this.events.push(`${id} close ${code}`),
    }
  }
}

/** A connection whose peer is the test. */
export class Lonely {
  readonly recorder = new Recorder()
  readonly connection: Connection
  readonly encoder = new HeaderEncoder()
  now = 0
  /** Called for each request. */
  onStream: (stream: Stream) => void = ignore
  readonly #decoder = new HeaderDecoder(1e6, (fields: FieldList) => fields)

  constructor(role: "client" | "server" = "server", options: Partial<ConnectionOptions> = {}, isOpen = true) {
    const { recorder } = this
    this.connection = new Connection(
      { role, ...standard, ...options },
      {
        onStream: (stream, headers) => {
          recorder.streams.push(stream)
          recorder.headers.push(headers)
          recorder.events.push(`${stream.id} ${headers[":method"]} ${headers[":path"]}`)
          stream.handler = recorder.handler(stream.id)
          this.onStream(stream)
        },
        onOpen: () => {},
        onPing: () => (recorder.pings += 1),
        onPingAcknowledged: () => recorder.events.push("acknowledged"),
        onProbeAcknowledged: () => recorder.events.push("probed"),
        onSettingsAcknowledged: ignore,
        onSettings: () => recorder.events.push("settings"),
        onGoaway: (code, reason) => recorder.events.push(`goaway ${code} ${reason}`),
        onStreamClosed: () => {},
        onHeld: (bytes) => (recorder.held += bytes),
        onOutput: () => {},
        onFinished: (error) => (recorder.finished = { error }),
      },
      0,
    )
    this.connection.take()
    if (!isOpen) return
    if (role === "server") this.receive(Frame.preface)
    this.receive(Frame.settings([]))
    this.connection.take()
  }

  receive(...frames: ReadonlyArray<Uint8Array>): void {
    this.connection.receive(Buffer.concat(frames), this.now)
  }

  /** A request, by default complete. */
  request(stream: number, fields: FieldList = [], flags: number = Flag.END_STREAM): Buffer {
    const block = this.encoder.encode(requestTemplate, fields)
    return Frame.encode(Type.HEADERS, flags | Flag.END_HEADERS, stream, block)
  }

  /** Frames that the connection has sent since the last call. */
  sent(): ReadonlyArray<SentFrame> {
    const frames: Array<SentFrame> = []
    let data: { stream: number; flags: number } | undefined
    const reader = new FrameReader({
      onDataHead: (stream, flags) => (data = { stream, flags }),
      onDataPart: (payload, isLast) => {
        if (isLast && data !== undefined) frames.push({ type: Type.DATA, ...data, payload, fields: [] })
      },
      onFrame: (type, flags, stream, payload) => {
        const fields = type === Type.HEADERS ? this.#decoder.decode(payload) : []
        frames.push({ type, flags, stream, payload, fields })
      },
    })
    reader.read(Buffer.concat(this.connection.take()))
    return frames
  }

  /** The sent frames in short: `RST_STREAM 1 7`, with the number in the payload. */
  replies(): ReadonlyArray<string> {
    const names = Object.keys(Type)
    return this.sent().map(({ type, stream, payload, fields }) => {
      const name = names[type] ?? String(type)
      if (type === Type.GOAWAY) return `GOAWAY ${Frame.readUint32(payload, 4)}`
      if (type === Type.HEADERS) return `HEADERS ${stream} ${fields.join(" ")}`
      if (type === Type.DATA) return `DATA ${stream} ${payload.length}`
      return payload.length === 4 ? `${name} ${stream} ${Frame.readUint32(payload, 0)}` : `${name} ${stream}`
    })
  }

  /** The code with which the connection has failed. */
  get failure(): number | undefined {
    return this.recorder.finished?.error?.code
  }
}

/**
 * Moves bytes between two connections, in chunks whose lengths `cut` gives, until nothing is left to send. Each chunk
 * is taken in parts, as by a connection that reads in turns.
 */
export const exchange = (one: Connection, other: Connection, cut: () => number): void => {
  const move = (from: Connection, to: Connection): boolean => {
    const bytes = Buffer.concat(from.take())
    for (let start = 0; start < bytes.length;) {
      const end = Math.min(bytes.length, start + Math.max(1, cut()))
      // A copy, as from a socket.
      const chunk = Buffer.from(bytes.subarray(start, end))
      for (let taken = 0; taken < chunk.length;) taken += to.receive(chunk.subarray(taken), 0, Math.max(1, cut()))
      start = end
    }
    from.pump()
    return bytes.length > 0
  }
  for (let moved = true; moved;) {
    const there = move(one, other)
    moved = move(other, one) || there
  }
}
