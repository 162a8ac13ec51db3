/**
 * Detects whether a client speaks HTTP/2 or HTTP/1.1, on a port with both. With TLS, ALPN decides. Without TLS, HTTP/2
 * with prior knowledge begins with a unique preface (RFC 9113, 3.4). Detection runs once per connection, so requests
 * cost nothing more.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"
import { isEncrypted } from "./Encrypted.ts"

/** Protocols in the server's order of preference. */
export const alpnProtocols = ["h2", "http/1.1"]

/**
 * Takes the connections whose callers speak HTTP/2 from the server and gives them to `http2`, with all of their bytes.
 * A connection that has sent neither within `timeoutMillis` is closed, after `onTimeout`.
 */
export const divert = (
  server: Server,
  event: "connection" | "secureConnection",
  timeoutMillis: number,
  http2: (socket: Socket) => void,
  onTimeout: (socket: Socket) => void,
): void => {
  const listeners = server.listeners(event)
  const http1 = (socket: Socket) => {
    for (const listener of listeners) listener.call(server, socket)
  }
  server.removeAllListeners(event)
  server.on(event, (socket: Socket) => {
    if (!isEncrypted(socket)) readPreface(socket, timeoutMillis, http1, http2, onTimeout)
    else if (socket.alpnProtocol === "h2") http2(socket)
    else http1(socket)
  })
}

const preface = Buffer.from("PRI * HTTP/2.0")

const readPreface = (
  socket: Socket,
  timeoutMillis: number,
  http1: (socket: Socket) => void,
  http2: (socket: Socket) => void,
  onTimeout: (socket: Socket) => void,
): void => {
  let received: Buffer | undefined
  const destroy = () => void socket.destroy()
  const onData = (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk])
    const length = Math.min(received.length, preface.length)
    const isPreface = received.compare(preface, 0, length, 0, length) === 0
    if (isPreface && length < preface.length) return
    clearTimeout(timer)
    socket.off("data", onData).off("end", destroy).off("error", destroy).off("close", onClose)
    if (isPreface) {
      // HTTP/2 reads what is left in the socket, HTTP/1.1 what the socket emits: to put it back there costs it more.
      socket.pause().unshift(received)
      http2(socket)
    } else {
      http1(socket)
      socket.emit("data", received)
    }
  }
  const timer = setTimeout(() => {
    onTimeout(socket)
    destroy()
  }, timeoutMillis)
  const onClose = () => clearTimeout(timer)
  socket.on("data", onData).on("end", destroy).on("error", destroy).on("close", onClose)
}
