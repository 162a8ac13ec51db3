/**
 * A client's connection over a socket that is connected, plain or TLS. Requests beyond the server's limit of streams
 * wait here. It opens no sockets, and knows no reason to open another one.
 */
import type { Socket } from "node:net"
import type { WindowSizes } from "../connection/ReceiveWindows.ts"
import { type ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import type { FieldList } from "../hpack/HeaderDecoder.ts"
import type { HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import { SocketConnection } from "../socket/SocketConnection.ts"
import { ClientStream, type ResponseHandler } from "./ClientStream.ts"

export type { ClientStream, ResponseHandler }

/** Time in which a server must complete a header block or frame, in milliseconds; it may take twice as long. */
const unfinishedMillis = 60_000

export interface ClientEvents {
  /** The settings of the server have arrived. */
  readonly onOpen: () => void
  /** The server takes no further requests. Those that it has not begun close next, with REFUSED_STREAM. */
  readonly onGoaway: (code: number, reason: string) => void
  /** The connection is over, and all requests have closed. `error`: for which violation of the protocol. */
  readonly onFinished: (error: ConnectionError | undefined) => void
  /** The socket has closed. */
  readonly onClose: () => void
}

export class ClientConnection {
  readonly #own: SocketConnection
  /** Requests that wait for the server's limit of streams, the oldest first. */
  #waiting: Array<ClientStream> = []

  constructor(socket: Socket, windows: WindowSizes, events: ClientEvents) {
    this.#own = new SocketConnection(
      socket,
      { role: "client", ...windows, maxConcurrentStreams: 0, unfinishedMillis },
      {
        onStream: ignore,
        onOpen: () => {
          events.onOpen()
          this.#beginWaiting()
        },
        onSettings: () => this.#beginWaiting(),
        onPing: ignore,
        onPingAcknowledged: ignore,
        onGoaway: (code, reason) => {
          events.onGoaway(code, reason)
          this.#refuseWaiting(ErrorCode.REFUSED_STREAM)
        },
        onStreamClosed: () => {
          if (this.#waiting.length > 0) this.#beginWaiting()
        },
        onHeld: ignore,
        onFinished: (error) => {
          this.#refuseWaiting(error?.code ?? ErrorCode.CANCEL)
          events.onFinished(error)
        },
        onClose: events.onClose,
      },
    )
  }

  /** The violation of the protocol that has ended the connection. */
  get error(): ConnectionError | undefined {
    return this.#own.connection.error
  }

  get isOver(): boolean {
    return this.#own.connection.isOver
  }

  /** Whether another request may be sent. */
  get isUsable(): boolean {
    return !this.#own.connection.isDraining && this.#own.connection.hasStreamIds
  }

  /** Sends a request, now or when the server has room. The connection must be usable. `isEnded`: with its whole body. */
  request(
    handler: ResponseHandler,
    template: HeaderTemplate | undefined,
    fields: FieldList,
    body: ReadonlyArray<Uint8Array>,
    isEnded: boolean,
  ): ClientStream {
    const { connection } = this.#own
    const stream = new ClientStream(connection, handler, template, fields, body, isEnded)
    if (connection.hasRoom && this.#waiting.length === 0) stream.begin()
    else this.#waiting.push(stream)
    return stream
  }

  /** Takes no further requests, and ends once those that are open have closed. */
  drain(): void {
    this.#own.connection.drain("")
  }

  /** Closes all requests at once, and then the socket. */
  close(): void {
    this.#own.close()
  }

  /** Closes all requests, and the socket at once. */
  destroy(): void {
    this.#own.destroy()
  }

  #beginWaiting(): void {
    const { connection } = this.#own
    while (connection.hasRoom) {
      const stream = this.#waiting.shift()
      if (stream === undefined) return
      if (!stream.isCancelled) stream.begin()
    }
  }

  #refuseWaiting(code: number): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const stream of waiting) stream.onClose(code)
  }
}

const ignore = () => {}
