/**
 * Connects the state machine of a connection to a socket, plain or TLS. Everything that is sent within one turn of the
 * event loop is one write. A peer that does not read stops the connection from reading, once replies to its frames
 * wait.
 */
import type { Socket } from "node:net"
import {
  Connection,
  type ConnectionEvents,
  type ConnectionOptions,
  type Headers,
  type Stream,
} from "../connection/Connection.ts"
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import type { FieldList } from "../hpack/HeaderDecoder.ts"
import { type Reader, readTurns } from "./ReadTurns.ts"
import { SocketLag } from "./SocketLag.ts"

/** Bytes in the socket from which further data waits with its stream. */
const maxUnsent = 256 * 1024

/** Bytes of heads and replies to frames, behind an unread socket, from which nothing further is read. */
const maxBehind = 64 * 1024

/** Bytes of a read that may have left more in the socket: Node's own limit. TLS reads less, so its lag is unknown. */
const fullRead = 64 * 1024

/** Bytes after which a connection that reads looks whether it has had its share of the turn. */
const part = 8 * 1024

/** Bytes of a chunk from which its memory is freed once no reader may still read it. */
const minFreed = 16 * 1024

const noBytes = Buffer.alloc(0)

/** Time in which the peer is to close its side of a connection that is over, in milliseconds. */
const lingerMillis = 1_000

/** Time in which the peer is to read what was sent before the connection was over, in milliseconds. */
const finalReadMillis = 60_000

export interface SocketOptions extends ConnectionOptions {
  /** Time in which the peer must complete a header block or frame, in milliseconds; it may take twice as long. */
  readonly unfinishedMillis: number
}

/** Events of a connection that its socket handles. */
type LocalEvents = "onOutput" | "onFinished" | "onSettingsAcknowledged" | "onProbeAcknowledged"

export interface SocketEvents extends Omit<ConnectionEvents, LocalEvents> {
  /** The connection is over; no stream is open. `error`: for which violation of the protocol. */
  readonly onFinished: (error: ConnectionError | undefined) => void
  /** The socket has closed. */
  readonly onClose: () => void
}

/** Most of its methods are called by the connection and by the turns: closures would take half of its memory. */
export class SocketConnection implements ConnectionEvents, Reader {
  turn = -1
  spent = 0
  lastRead = -1
  readonly connection: Connection
  readonly socket: Socket
  #isBlocked = false
  #isScheduled = false
  #isReceiving = false
  readonly #events: SocketEvents
  readonly #unfinishedMillis: number
  /** Set while a block or frame may be unfinished. */
  #unfinishedTimer: NodeJS.Timeout | undefined
  /** Whether it reads nothing before its next turn, and before the peer has read. */
  #givesWay = false
  #isHeldBack = false
  /** The chunk that was read from the socket last. */
  #chunk: Buffer = noBytes
  /** The part of it that was not taken in its turn, and whether its read may have left more in the socket. */
  #rest: Buffer = noBytes
  #isFullRead = false
  readonly #lag = new SocketLag(performance.now())
  readonly #isServer: boolean
  readonly #flush: () => void

  /** Takes over the socket, with what it has not emitted yet. */
  constructor(socket: Socket, options: SocketOptions, events: SocketEvents) {
    this.socket = socket
    this.#unfinishedMillis = options.unfinishedMillis
    this.#isServer = options.role === "server"
    this.#flush = () => {
      this.#isScheduled = false
      this.#write()
    }
    this.#events = events
    this.connection = new Connection(options, this, performance.now())
    socket.on("data", (chunk: Buffer) => this.#receive(chunk))
    socket.on("drain", () => this.#onDrain())
    // The event "close" follows.
    socket.on("error", () => {})
    // A peer that has ended its side does not read responses either.
    socket.on("end", () => this.#lost())
    socket.on("close", () => {
      clearTimeout(this.#unfinishedTimer)
      this.#lost()
      events.onClose()
    })
    this.#schedule()
    socket.resume()
  }

  /** Milliseconds that the bytes which are read now have waited in the sockets, as far as it is known. */
  get lag(): number {
    return this.#lag.at(performance.now())
  }

  /** Ends all streams, and the socket once what was sent before is written. */
  close(): void {
    this.connection.drain("")
    this.connection.lost()
  }

  /** Ends all streams. The client learns which were processed, if the socket takes it at once. */
  destroy(): void {
    this.connection.drain("")
    this.#write()
    this.connection.lost()
    this.socket.destroy()
  }

  onStream(stream: Stream, headers: Headers, isLast: boolean, fields: FieldList): void {
    this.#events.onStream(stream, headers, isLast, fields)
  }

  onOpen(): void {
    this.#events.onOpen()
  }

  onSettings(): void {
    this.#events.onSettings()
  }

  onPing(): void {
    this.#events.onPing()
  }

  onPingAcknowledged(): void {
    this.#events.onPingAcknowledged()
  }

  onSettingsAcknowledged(): void {
    this.#lag.acknowledged(performance.now())
  }

  onProbeAcknowledged(): void {
    this.#lag.acknowledged(performance.now())
  }

  onGoaway(code: number, reason: string): void {
    this.#events.onGoaway(code, reason)
  }

  onStreamClosed(): void {
    this.#events.onStreamClosed()
  }

  onHeld(bytes: number): void {
    this.#events.onHeld(bytes)
  }

  onOutput(): void {
    this.#schedule()
  }

  onFinished(error: ConnectionError | undefined): void {
    this.#events.onFinished(error)
    this.#schedule()
  }

  /** It has its next turn. */
  resume(): void {
    this.#givesWay = false
    this.#resume()
  }

  #receive(chunk: Buffer): void {
    // Nothing is left of the last one: until it is taken, the socket is paused, or the connection is over.
    this.#chunk = this.#rest = chunk
    this.#isFullRead = chunk.length >= fullRead
    this.#read()
  }

  /** Takes what was read from the socket, until it has had its share of the turn. */
  #read(): void {
    let now = performance.now()
    this.#isReceiving = true
    try {
      while (this.#rest.length > 0 && !this.#givesWay) {
        this.#take(now, part)
        const start = now
        now = performance.now()
        this.#givesWay = readTurns.hasRead(this, now - start, now)
      }
    } finally {
      this.#isReceiving = false
      this.#write()
      if (this.#unfinishedTimer === undefined && this.connection.unfinished !== 0) this.#limitUnfinished()
      if (this.#rest.length === 0) {
        this.#lag.hasRead(!this.#isFullRead)
        this.#freeChunk()
      }
      if (this.#givesWay) {
        this.socket.pause()
        if (this.#isServer && this.#isFullRead && this.#lag.isBehind(now)) this.connection.probe()
      }
    }
  }

  /**
   * Frees the memory of the chunk, unless a reader may still read a part of it. The next read gets the same memory,
   * which is still in the cache of the processor. A small chunk is not worth the call, and a part of a larger buffer
   * is not the connection's to free.
   */
  #freeChunk(): void {
    const { buffer, byteLength } = this.#chunk
    this.#chunk = noBytes
    if (this.connection.takeKept() || byteLength < minFreed || byteLength < buffer.byteLength) return
    if (buffer instanceof ArrayBuffer) buffer.transfer(0)
  }

  #take(now: number, enough: number): void {
    const taken = this.connection.receive(this.#rest, now, enough)
    this.#rest = taken < this.#rest.length ? this.#rest.subarray(taken) : noBytes
  }

  /** The peer sends nothing more. A paused socket may end ahead of what was read from it. */
  #lost(): void {
    if (this.#rest.length > 0) this.#take(performance.now(), Infinity)
    this.connection.lost()
  }

  /** One timer for many blocks and frames: a connection that receives much is nearly always within one. */
  #limitUnfinished(): void {
    const { unfinished } = this.connection
    this.#unfinishedTimer = undefined
    if (unfinished === 0 || this.connection.isOver) return
    this.#unfinishedTimer = setTimeout(() => {
      // The rest may be in a socket from which nothing is read.
      if (this.connection.unfinished !== unfinished || this.socket.isPaused()) return this.#limitUnfinished()
      this.connection.fail(new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, "a frame or header block is not complete"))
    }, this.#unfinishedMillis).unref()
  }

  #resume(): void {
    if (this.#canRead && this.#rest.length > 0) this.#read()
    if (this.#canRead) this.socket.resume()
  }

  get #canRead(): boolean {
    return !this.#givesWay && !this.#isHeldBack
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isReceiving) return
    this.#isScheduled = true
    queueMicrotask(this.#flush)
  }

  #write(): void {
    const { connection, socket } = this
    while (!this.#isBlocked && connection.outputSize > 0 && socket.writable) {
      const pieces = connection.take()
      const [first] = pieces
      if (pieces.length === 1 && first !== undefined) socket.write(first)
      else {
        socket.cork()
        for (const piece of pieces) socket.write(piece)
        socket.uncork()
      }
      if (socket.writableLength > maxUnsent) {
        this.#isBlocked = true
        connection.setBlocked(true)
      } else connection.pump()
    }
    if (this.#isBlocked && connection.outputSize > maxBehind) {
      this.#isHeldBack = true
      socket.pause()
    }
    if (connection.isOver) this.#end()
  }

  #onDrain(): void {
    if (!this.#isBlocked) return
    this.#isBlocked = false
    this.connection.setBlocked(false)
    this.#isHeldBack = false
    this.#write()
    this.#resume()
  }

  /** Closes our side behind what is written, and then waits: a socket that is closed at once may lose it. */
  #end(): void {
    const { socket } = this
    if (socket.destroyed || socket.writableEnded) return
    for (const piece of this.connection.take()) socket.write(piece)
    let timer = setTimeout(() => socket.destroy(), finalReadMillis).unref()
    socket.end(() => {
      clearTimeout(timer)
      timer = setTimeout(() => socket.destroy(), lingerMillis).unref()
    })
    socket.resume()
    socket.once("end", () => socket.destroySoon())
    socket.once("close", () => clearTimeout(timer))
  }
}
