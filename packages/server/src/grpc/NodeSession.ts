/** A connection of node:http2. Keepalive.ts and the stop of a server decide when it ends; Goaway.ts ends it. */
import type { ServerHttp2Session } from "node:http2"
import type { Socket } from "node:net"
import * as Goaway from "./Goaway.ts"
import type { Http2Session } from "./Http2Session.ts"

export class NodeSession implements Http2Session {
  readonly remoteAddress: string | undefined
  readonly #connection: Goaway.Http2Connection
  readonly #session: ServerHttp2Session

  constructor(session: ServerHttp2Session, socket: Socket) {
    this.#session = session
    this.#connection = { session, socket }
    this.remoteAddress = session.socket.remoteAddress
  }

  get bytesRead(): number {
    return this.#session.destroyed ? 0 : this.#session.socket.bytesRead
  }

  get bytesWritten(): number {
    return this.#session.destroyed ? 0 : this.#session.socket.bytesWritten
  }

  get isClosing(): boolean {
    return this.#session.closed || this.#session.destroyed
  }

  get isDestroyed(): boolean {
    return this.#session.destroyed
  }

  ping(acknowledged: () => void): void {
    this.#session.ping((error) => {
      if (error === null) acknowledged()
    })
  }

  onSettings(run: () => void): void {
    this.#session.on("remoteSettings", run)
  }

  onPing(run: () => void): void {
    this.#session.on("ping", run)
  }

  onClose(run: () => void): void {
    this.#session.on("close", run)
  }

  offClose(run: () => void): void {
    this.#session.off("close", run)
  }

  closeGracefully(reason: string, onLast?: () => void): void {
    Goaway.gracefully(this.#connection, reason, onLast)
  }

  closeWithin(reason: string, limitMillis: number): void {
    Goaway.within(this.#session, reason, limitMillis)
  }

  closeAtOnce(reason: string): void {
    Goaway.atOnce(this.#session, reason)
  }

  destroy(): void {
    this.#session.destroy()
  }
}
