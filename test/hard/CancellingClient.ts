/**
 * A gRPC connection of `@nereid/http2` that sends calls and cancels others. A connection of node:http2 would end
 * itself: nghttp2 allows 330 frames of cancelled calls a second, and responses cross cancellations.
 */
import { connect } from "node:net"
import { ClientConnection, type ResponseHandler } from "@nereid/http2/internal/client/ClientConnection"
import { HeaderTemplate } from "@nereid/http2/internal/hpack/HeaderEncoder"
import * as GrpcCalls from "./GrpcCalls.ts"

const template = new HeaderTemplate(
  [":scheme", "http", ":authority", "localhost", ...Object.entries(GrpcCalls.headers)].flat(),
)

const windows = { streamWindow: 65_535, connectionWindow: 2 ** 20 }

const ignore = () => {}

const unread: ResponseHandler = {
  onHeaders: ignore,
  onData: () => false,
  onTrailers: ignore,
  onEnd: ignore,
  onClose: ignore,
}

export class CancellingClient {
  /** How the connection has ended, with the last GOAWAY of the server. */
  end = "nothing"
  readonly #connection: ClientConnection

  constructor(port: number) {
    const socket = connect(port, "localhost")
    this.#connection = new ClientConnection(socket, windows, {
      onOpen: ignore,
      onGoaway: (code, reason) => (this.end = `GOAWAY ${code} ${reason}`),
      onFinished: (error) => {
        if (error !== undefined) this.end += `, ${error.message}`
      },
      onClose: () => (this.end += ", closed"),
    })
  }

  /** The gRPC status of a call, or "reset" without one. */
  call(message: Uint8Array): Promise<string> {
    if (!this.#connection.isUsable) return Promise.resolve("reset")
    return new Promise((resolve) => {
      let status = "reset"
      const note: ResponseHandler["onTrailers"] = (headers) => (status = String(headers["grpc-status"] ?? status))
      const handler = { ...unread, onHeaders: note, onTrailers: note, onClose: () => resolve(status) }
      this.#connection.request(handler, template, [], [message], true)
    })
  }

  /** Begins a call and cancels it at once. */
  cancelled(message: Uint8Array): void {
    if (this.#connection.isUsable) this.#connection.request(unread, template, [], [message], false).cancel()
  }

  destroy(): void {
    this.#connection.destroy()
  }
}
