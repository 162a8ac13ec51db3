/**
 * One stream of a connection: its state, its windows, and what waits to be sent or read. Connection.ts receives,
 * Sender.ts sends.
 */
import type { HeaderBlock } from "../header/HeaderBlock.ts"
import type { Headers } from "../header/Headers.ts"
import type { FieldList } from "../hpack/HeaderDecoder.ts"
import type { HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import type { HeldData } from "./HeldData.ts"

/** Events of a stream. `onClose` always comes, once, and is the last. */
export interface StreamHandler {
  /** For a client: the head of the response. `isLast`: it is also the end. Heads with a status 1xx are dropped. */
  readonly onHeaders: (headers: Headers, isLast: boolean) => void
  /**
   * A part of the body: a view on the chunk that was received. Returns whether the part may still be read after the
   * call. It is not overwritten then; otherwise its memory may be freed.
   */
  readonly onData: (part: Buffer) => boolean
  readonly onTrailers: (headers: Headers) => void
  /** The peer has sent everything. */
  readonly onEnd: () => void
  /** Everything that waited has been written, after a write that returned false. */
  readonly onDrain: () => void
  /** Our message was sent, and the stream is still open unless `onClose` came before. */
  readonly onSent: () => void
  /** The stream is over: NO_ERROR once both sides have sent everything, or the code of a reset. */
  readonly onClose: (code: number) => void
}

/** The last block of a message: a template, fields, or both. */
export interface Trailers {
  readonly template: HeaderTemplate | undefined
  readonly fields: FieldList
}

export class Stream {
  readonly id: number
  handler: StreamHandler | undefined
  /** Next stream of the same slot (StreamTable.ts). */
  nextInSlot: Stream | undefined
  isClosed = false
  /** Whether we, and the peer, have sent everything. */
  isLocalEnded = false
  isRemoteEnded = false
  /** Whether the final head was received. */
  hasReceivedHead = false
  /** Bytes that we may send. */
  sendWindow: number
  /** Bytes that the peer may send. */
  receiveWindow: number
  /** Bytes that were read since the last WINDOW_UPDATE. */
  unacknowledged = 0
  /** Bytes of the body that are still to come; -1 without a declared length. */
  expected = -1
  /** Payloads that wait for a window, and the position in the first one. */
  queue: Array<Uint8Array> = noPayloads
  position = 0
  queued = 0
  /** Whether the message ends behind the queue, and with which trailers. */
  isEnding = false
  trailers: Trailers | undefined
  /** Whether the writer waits for `onDrain`. */
  needsDrain = false
  /** In the list of streams that can send (Sender.ts). */
  isReady = false
  nextReady: Stream | undefined
  /** Whether the reader has paused, what has arrived since, and the end behind it. */
  isPaused = false
  held: HeldData | undefined
  heldTrailers: HeaderBlock | undefined
  isEndHeld = false

  constructor(id: number, sendWindow: number, receiveWindow: number) {
    this.id = id
    this.sendWindow = sendWindow
    this.receiveWindow = receiveWindow
  }
}

/** Shared, because most streams never queue; it is replaced and never filled. */
export const noPayloads: Array<Uint8Array> = []

export const noFields: FieldList = []
