/**
 * Closes a connection over HTTP/1.1 whose request is refused before its end. A socket that closes with unread bytes
 * resets, and the client would never see the response. So the connection discards what comes for a short time:
 *
 *   refused ─► response ─► discard ─┬─ end of the body or of the connection ─┬─► close
 *                                   └─ too long, or too much ────────────────┘
 */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"

/** Time and bytes that a refused client may still send. */
const lingerMillis = 1_000
const lingerBytes = 64 * 2 ** 20

const lastChunk = Buffer.from("\r\n0\r\n\r\n")

/** Discards what comes on the connection of `request`, and calls `close` once. */
export const begin = (request: IncomingMessage, close: () => void): void => {
  const { socket } = request
  let discarded = 0
  let isOver = false
  const end = () => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    close()
  }
  const timer = setTimeout(end, lingerMillis)
  request.on("end", end)
  socket.on("end", end)
  socket.on("close", end)
  const discard = (bytes: Uint8Array) => {
    discarded += bytes.length
    if (discarded > lingerBytes) end()
  }
  if (request.headers["transfer-encoding"] === undefined) return void request.on("data", discard)
  // Node's parser takes a microsecond for each chunk of the body, and a chunk can be one byte.
  bypassParser(socket, (bytes) => {
    discard(bytes)
    if (bytes.subarray(-lastChunk.length).equals(lastChunk)) end()
  })
  request.resume()
}

/** Gives the bytes of a socket to `take`, in place of the HTTP parser. */
const bypassParser = (socket: Socket, take: (bytes: Buffer) => void): void => {
  // Node's HTTP parser reads the socket itself until a listener is added, and is then one of the listeners.
  socket.on("data", take)
  socket.removeAllListeners("data")
  socket.on("data", take)
  socket.resume()
}
