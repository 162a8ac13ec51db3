/**
 * Closes the HTTP/1.1 connections of a stopping port once their clients are quiet. Until then a connection gets the
 * responses to its next requests, as from Triton.
 *
 *   pending response ─► quiet for 3 ticks ─► FIN ─┬─ the client's FIN ──┬─► closed
 *           ▲                   │                 └─ 3 ticks more ──────┘
 *           └──── request ◄─────┘
 *
 * Ticks, and not times: between two ticks the process reads its sockets, however busy it is. A client that has seen the
 * FIN does not send its next request on this connection, even one in the same process.
 */
import type { Socket } from "node:net"

const tickMillis = 50

/** Ticks without a pending request until the server ends its side, and until it stops waiting for the client's. */
const quietTicks = 3

export interface QuietConnections {
  /** Notes a request on a connection. */
  readonly active: (socket: Socket) => void
  /** Ends the watch. */
  readonly stop: () => void
}

/** Watches `connections`, of which those with a pending response are `isBusy`. */
export const close = (connections: () => Iterable<Socket>, isBusy: (socket: Socket) => boolean): QuietConnections => {
  /** Ticks since the last request. */
  const quiet = new Map<Socket, number>()
  const tick = () => {
    for (const socket of connections()) {
      const ticks = isBusy(socket) ? 0 : (quiet.get(socket) ?? 0) + 1
      quiet.set(socket, ticks)
      if (ticks === quietTicks) socket.end()
      else if (ticks === 2 * quietTicks) socket.destroy()
    }
  }
  const timer = setInterval(tick, tickMillis)
  return {
    active: (socket) => void quiet.delete(socket),
    stop: () => clearInterval(timer),
  }
}
