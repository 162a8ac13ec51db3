/**
 * Which of two protocols the caller at the other end of a connection speaks, where one port speaks both: HTTP/2 or
 * HTTP/1.1. Over TLS the handshake has settled it (ALPN); without, HTTP/2 with prior knowledge begins with a preface that
 * no other request begins with (RFC 9113, 3.4). It is asked once for a connection; a request costs nothing more.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"

/** In the order in which the server prefers them. */
export const alpnProtocols = ["h2", "http/1.1"]

/**
 * Takes the connections whose callers speak HTTP/2 from the server and gives them to `http2`, with all of their bytes. One
 * that has not said which it is within `timeoutMillis` is closed.
 */
export const divert = (
  server: Server,
  event: "connection" | "secureConnection",
  timeoutMillis: number,
  http2: (socket: Socket) => void,
): void => {
  const http1 = server.listeners(event)
  server.removeAllListeners(event)
  server.on(event, (socket: Socket) => {
    const decide = (isHttp2: boolean) => {
      if (isHttp2) http2(socket)
      else for (const listener of http1) listener.call(server, socket)
    }
    if (socket instanceof TLSSocket) decide(socket.alpnProtocol === "h2")
    else readPreface(socket, timeoutMillis, decide)
  })
}

const preface = Buffer.from("PRI * HTTP/2.0")

const readPreface = (socket: Socket, timeoutMillis: number, decide: (isHttp2: boolean) => void): void => {
  let received: Buffer = Buffer.alloc(0)
  const destroy = () => void socket.destroy()
  const onReadable = () => {
    const chunk: Buffer | null = socket.read()
    if (chunk === null) return
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const length = Math.min(received.length, preface.length)
    const isPreface = received.compare(preface, 0, length, 0, length) === 0
    if (isPreface && length < preface.length) return
    clearTimeout(timer)
    socket.off("readable", onReadable).off("end", destroy).off("error", destroy).off("close", onClose)
    socket.unshift(received)
    decide(isPreface)
  }
  const timer = setTimeout(destroy, timeoutMillis)
  const onClose = () => clearTimeout(timer)
  socket.on("readable", onReadable).on("end", destroy).on("error", destroy).on("close", onClose)
}
