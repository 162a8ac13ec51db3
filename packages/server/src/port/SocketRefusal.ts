/** Refusals of bytes for which Node makes no response: written to the socket, whose connection closes then. */
import type { Socket } from "node:net"

export type Refusal = readonly [status: string, message: string]

/** For a request of a client that takes this server for a proxy. */
export const ofConnect: Refusal = ["400 Bad Request", "CONNECT is not supported, because this server is not a proxy"]

/** For bytes that are not HTTP. */
export const ofError = ({ code = "", message }: NodeJS.ErrnoException): Refusal =>
  ofCodes.get(code) ?? ["400 Bad Request", `malformed HTTP: ${message}`]

const ofCodes: ReadonlyMap<string, Refusal> = new Map([
  ["HPE_HEADER_OVERFLOW", ["431 Request Header Fields Too Large", "the request's headers are too large"]],
  ["ERR_HTTP_REQUEST_TIMEOUT", ["408 Request Timeout", "the request did not arrive in time"]],
])

/** Time for a client to read why, before its connection is closed. */
const lingerMillis = 1_000

/** Sends a refusal, discards what the client still sends, and closes. */
export const send = (socket: Socket, [status, message]: Refusal): void => {
  const body = JSON.stringify({ error: message })
  const headers = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`
  socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${body}`)
  // The client may never end its side.
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.on("close", () => clearTimeout(timer)).resume()
}
