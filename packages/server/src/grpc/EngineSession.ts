/** A connection of `@nereid/http2`: its rules, as Keepalive.ts and SessionCalls.ts apply them, and its end. */
import { constVoid } from "effect/Function"
import type { Socket } from "node:net"
import { ConnectionError, ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import type { SocketConnection } from "@nereid/http2/internal/socket/SocketConnection"
import type { Http2Session } from "./Http2Session.ts"

/** Longest time of the first step of a graceful end, in milliseconds: for clients that do not reply. */
const noticeMillis = 1_000

/** Most connections have one callback of each kind, or two. */
const nothing: ReadonlyArray<() => void> = []

export class EngineSession implements Http2Session {
  readonly socket: Socket
  readonly remoteAddress: string | undefined
  /** Whether a rule of the server has ended the connection, which has reported it. */
  isClosedAtOnce = false
  #onSettings = nothing
  #onPing = nothing
  #onClose = nothing
  #connection: SocketConnection | undefined
  #isDestroyed = false
  /** Called for the acknowledgements of our pings, which come in their order. */
  #acknowledged = nothing
  /** Callbacks of the end of the first step of a graceful end; undefined before that step. */
  #onLast: Array<() => void> | undefined

  constructor(socket: Socket) {
    this.socket = socket
    this.remoteAddress = socket.remoteAddress
  }

  /** Sets the connection, whose constructor already needs the session. */
  begin(connection: SocketConnection): void {
    this.#connection = connection
  }

  get bytesRead(): number {
    return this.#isDestroyed ? 0 : this.socket.bytesRead
  }

  /** With what is about to be written, such as the acknowledgement of a ping. */
  get bytesWritten(): number {
    return this.#isDestroyed ? 0 : this.socket.bytesWritten + (this.#connection?.connection.outputSize ?? 0)
  }

  get isClosing(): boolean {
    return this.#isDestroyed || this.#connection?.connection.isDraining === true
  }

  get isDestroyed(): boolean {
    return this.#isDestroyed
  }

  ping(acknowledged: () => void): void {
    this.#acknowledged = [...this.#acknowledged, acknowledged]
    this.#connection?.connection.ping()
  }

  onSettings(run: () => void): void {
    this.#onSettings = [...this.#onSettings, run]
  }

  onPing(run: () => void): void {
    this.#onPing = [...this.#onPing, run]
  }

  onClose(run: () => void): void {
    this.#onClose = [...this.#onClose, run]
  }

  offClose(run: () => void): void {
    this.#onClose = this.#onClose.filter((other) => other !== run)
  }

  closeGracefully(reason: string, onLast: () => void = constVoid): void {
    if (this.isClosing) return onLast()
    if (this.#onLast !== undefined) return void this.#onLast.push(onLast)
    this.#onLast = [onLast]
    const finish = () => {
      clearTimeout(timer)
      this.#connection?.connection.drain(reason)
      for (const call of this.#onLast?.splice(0) ?? []) call()
    }
    const timer = setTimeout(finish, noticeMillis)
    this.onClose(finish)
    this.#connection?.connection.announce(reason)
    this.ping(finish)
  }

  closeWithin(reason: string, limitMillis: number): void {
    this.#connection?.connection.drain(reason)
    const timer = setTimeout(() => this.closeAtOnce(reason), limitMillis)
    this.onClose(() => clearTimeout(timer))
  }

  closeAtOnce(reason: string): void {
    this.isClosedAtOnce = true
    this.#connection?.connection.fail(new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, reason))
  }

  destroy(): void {
    this.#connection?.destroy()
  }

  opened(): void {
    const callbacks = this.#onSettings
    this.#onSettings = nothing
    for (const run of callbacks) run()
  }

  pinged(): void {
    for (const run of this.#onPing) run()
  }

  acknowledged(): void {
    const [first, ...others] = this.#acknowledged
    this.#acknowledged = others
    first?.()
  }

  /** The connection is over. */
  ended(): void {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    for (const run of this.#onClose) run()
  }
}
