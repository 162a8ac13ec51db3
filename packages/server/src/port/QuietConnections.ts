/**
 * Closes the HTTP/1.1 connections of a stopping port once their clients are quiet. Until then a connection gets the
 * responses to its next requests, as from Triton.
 *
 *   pending response ─► quiet for 3 ticks, and the port too ─► FIN ─┬─ the client's FIN ──┬─► closed
 *           ▲                            │                          └─ 3 ticks more ──────┘
 *           └────────── request ◄────────┘
 *
 * Ticks, and not times: between two ticks the process reads its sockets, however busy it is. A client that has seen the
 * FIN does not send its next request on this connection, even one in the same process.
 *
 * The port is quiet without requests to infer on any connection. While a client sends requests, its pool may take an
 * idle connection for the next one at the moment of the FIN, and that request would be lost.
 */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"

const tickMillis = 50

/** Ticks without a pending request until the server ends its side, and until it stops waiting for the client's. */
const quietTicks = 3

export interface QuietConnections {
  /** Notes a request on a connection. */
  readonly active: (request: IncomingMessage) => void
  /** Ends the watch. */
  readonly stop: () => void
}

/** Watches `connections`, of which those with a pending response are `isBusy`. */
export const close = (connections: () => Iterable<Socket>, isBusy: (socket: Socket) => boolean): QuietConnections => {
  /** Ticks since the last request of a connection. */
  const quiet = new Map<Socket, number>()
  /** Ticks since the server has ended its side. */
  const ended = new Map<Socket, number>()
  /** Ticks since the last request that a client cannot repeat by itself. */
  let portQuiet = 0
  const tick = () => {
    portQuiet += 1
    for (const socket of connections()) {
      const sinceEnd = ended.get(socket)
      if (sinceEnd === quietTicks) socket.destroy()
      else if (sinceEnd !== undefined) ended.set(socket, sinceEnd + 1)
      else {
        const ticks = isBusy(socket) ? 0 : (quiet.get(socket) ?? 0) + 1
        quiet.set(socket, ticks)
        if (Math.min(ticks, portQuiet) < quietTicks) continue
        socket.end()
        ended.set(socket, 1)
      }
    }
  }
  const timer = setInterval(tick, tickMillis)
  return {
    active: ({ socket, method }) => {
      quiet.delete(socket)
      // Probes never end.
      if (method !== "GET" && method !== "HEAD") portQuiet = 0
    },
    stop: () => clearInterval(timer),
  }
}
