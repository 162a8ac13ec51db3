/**
 * Reads the frames of a connection that carry no message (RFC 9113, 6.3 to 6.9): settings, pings, windows, resets and
 * priorities, which are ignored.
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Flag, Type } from "../frame/Frame.ts"
import type { Output } from "../frame/Output.ts"
import type { FloodBudget } from "./FloodBudget.ts"
import * as PeerSettings from "./PeerSettings.ts"
import type { Sender } from "./Sender.ts"
import type { Streams } from "./Streams.ts"

export interface ControlEvents {
  /** The first settings of the peer have arrived. */
  readonly onOpen: () => void
  /** The peer has sent further settings. */
  readonly onSettings: () => void
  /** The peer has acknowledged our settings, which are the first bytes that it receives. */
  readonly onSettingsAcknowledged: () => void
  /** The peer has sent a ping, which was acknowledged. */
  readonly onPing: () => void
  readonly onPingAcknowledged: () => void
  readonly onProbeAcknowledged: () => void
}

export class ControlFrames {
  /** Whether the settings of the peer have arrived. */
  hasSettings = false
  /** Streams that the peer allows. */
  maxStreams = Infinity
  readonly #streams: Streams
  readonly #sender: Sender
  readonly #output: Output
  readonly #flood: FloodBudget
  readonly #events: ControlEvents

  constructor(streams: Streams, sender: Sender, output: Output, flood: FloodBudget, events: ControlEvents) {
    this.#streams = streams
    this.#sender = sender
    this.#output = output
    this.#flood = flood
    this.#events = events
  }

  ping(): void {
    this.#output.frame(Type.PING, 0, 0, ourPing)
  }

  probe(): void {
    this.#output.frame(Type.PING, 0, 0, ourProbe)
  }

  /** @throws ConnectionError */
  onPriority(id: number, payload: Buffer): void {
    if (payload.length !== 5) throw sizeError("PRIORITY")
    if (id === 0 || Frame.readUint31(payload, 0) === id) throw protocolError("PRIORITY of a wrong stream")
    this.#flood.spend(1)
  }

  /** @throws ConnectionError */
  onReset(id: number, payload: Buffer): void {
    if (payload.length !== 4) throw sizeError("RST_STREAM")
    this.#flood.spend(1)
    const stream = this.#streams.existing(id, Type.RST_STREAM)
    if (stream !== undefined) this.#streams.close(stream, Frame.readUint32(payload, 0))
  }

  /** @throws ConnectionError */
  onSettings(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw protocolError("SETTINGS of a stream")
    if ((flags & Flag.ACK) !== 0) {
      if (payload.length > 0) throw sizeError("the acknowledgement of SETTINGS")
      this.#flood.spend(1)
      return this.#events.onSettingsAcknowledged()
    }
    const settings = PeerSettings.read(payload, this.#streams.isServer)
    const { initialWindowSize, maxFrameSize, headerTableSize, maxConcurrentStreams } = settings
    this.#flood.spend(1 + (payload.length >>> 6))
    if (initialWindowSize !== undefined) this.#setStreamWindow(initialWindowSize)
    if (maxFrameSize !== undefined) this.#sender.maxFrameSize = maxFrameSize
    if (headerTableSize !== undefined) this.#sender.encoder.limit(headerTableSize)
    if (maxConcurrentStreams !== undefined) this.maxStreams = maxConcurrentStreams
    this.#output.frame(Type.SETTINGS, Flag.ACK, 0, noBytes)
    if (this.hasSettings) return this.#events.onSettings()
    this.hasSettings = true
    this.#events.onOpen()
  }

  /** @throws ConnectionError */
  onPing(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw protocolError("PING of a stream")
    if (payload.length !== 8) throw sizeError("PING")
    this.#flood.spend(1)
    if ((flags & Flag.ACK) !== 0) {
      if (payload.equals(ourPing)) this.#events.onPingAcknowledged()
      else if (payload.equals(ourProbe)) this.#events.onProbeAcknowledged()
      return
    }
    this.#output.frame(Type.PING, Flag.ACK, 0, payload)
    this.#events.onPing()
  }

  /** @throws ConnectionError */
  onWindowUpdate(id: number, payload: Buffer): void {
    if (payload.length !== 4) throw sizeError("WINDOW_UPDATE")
    this.#flood.spend(1)
    const increment = Frame.readUint31(payload, 0)
    if (id === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE has an increment of 0")
      this.#sender.window += increment
      if (this.#sender.window > Frame.maxWindow) throw flowError("the window is larger than 2^31 - 1")
      return
    }
    const streams = this.#streams
    const stream = streams.existing(id, Type.WINDOW_UPDATE)
    if (stream === undefined) return
    if (increment === 0) return streams.streamError(stream, ErrorCode.PROTOCOL_ERROR)
    stream.sendWindow += increment
    if (stream.sendWindow > Frame.maxWindow) return streams.streamError(stream, ErrorCode.FLOW_CONTROL_ERROR)
    this.#sender.widened(stream)
  }

  #setStreamWindow(size: number): void {
    const streams = this.#streams
    const change = size - streams.peerWindow
    streams.peerWindow = size
    if (change === 0 || streams.size === 0) return
    this.#flood.spend(streams.size >>> 4)
    for (const stream of streams.all()) {
      stream.sendWindow += change
      if (stream.sendWindow > Frame.maxWindow) throw flowError("the window of a stream is larger than 2^31 - 1")
      this.#sender.widened(stream)
    }
  }
}

const noBytes = Buffer.alloc(0)

/** Payload of our pings, by which their acknowledgements are known. */
const ourPing = Buffer.from("nereid\0\0", "latin1")
const ourProbe = Buffer.from("nereid\0\x01", "latin1")

const protocolError = (message: string) => new ConnectionError(ErrorCode.PROTOCOL_ERROR, message)

const flowError = (message: string) => new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, message)

const sizeError = (frame: string) => new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, `${frame} has a wrong length`)
