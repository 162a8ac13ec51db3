/**
 * Clients that end their side of an HTTP/1.1 connection while requests are pending. A client that waits for its
 * response (`shutdown(SHUT_WR)`) and a client that has closed its socket send the same: FIN. The system of the second
 * resets the connection at the next bytes from the server, so the server sends some that have no meaning.
 *
 *   FIN ─► no response pending ───────► close
 *        ├ response not begun ────────► probe: `102 Processing` ─┬─ reset ─► request cancelled
 *        │                                                       └─ nothing ─► probe again; response ─► close
 *        ├ event stream ──────────────► the same, with comments
 *        └ other response in progress ► cancelled: only browsers read those, and they do not half-close
 *
 * Clients of HTTP/1.0 know no 1xx (RFC 9110, 15.2). Their requests go on without probes until the send timeout.
 */
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { OutgoingResponse } from "./HttpExchange.ts"

/**
 * Time until the first probe, in milliseconds; each further one takes twice as long. Fast responses come without
 * probes. The first probe causes the reset, and the second one detects it: an overloaded server must not compute for
 * callers that have left, and learns from them how long callers wait.
 */
const firstProbeMillis = 2
const maxProbeMillis = 5_000

/** Lets the server answer clients that have ended their side. Without it, Node would end the connection. */
export const allow = (server: Server): void => void Object.assign(server, { httpAllowHalfOpen: true })

/**
 * Property of a response that holds its probe. With a WeakMap, collections of the young generation would keep the
 * response: V8 treats the values of an old WeakMap as live, and the probe refers to the response.
 */
const probeProperty = Symbol("probe")

interface Probed {
  [probeProperty]?: () => void
}

/** Sets how to probe a response that has begun: by bytes in its body that its client ignores. */
export const probeWith = (response: OutgoingResponse & Probed, write: () => void): void => {
  response[probeProperty] = write
}

/** Watches a connection whose pending responses are `responses`, the oldest first. */
export const watch = (socket: Socket, responses: ReadonlyArray<ServerResponse>): void => {
  let timer: NodeJS.Timeout | undefined
  let delay = firstProbeMillis
  const probe = () => {
    const [first] = responses
    if (first === undefined || socket.destroyed) return
    if (socket.writableLength === 0) probeOf(first)?.()
    delay = Math.min(2 * delay, maxProbeMillis)
    timer = setTimeout(probe, delay)
  }
  // True for plain sockets already, but not for those of TLS.
  socket.allowHalfOpen = true
  socket.on("end", () => {
    const [first] = responses
    if (first === undefined) return
    const isCut = first.headersSent && !first.writableEnded && !(probeProperty in first)
    if (isCut) socket.destroySoon()
    else timer = setTimeout(probe, delay)
  })
  socket.on("close", () => clearTimeout(timer))
}

/** Whether a client that has ended its side cannot be probed for this response. */
export const isSilent = (response: ServerResponse): boolean => probeOf(response) === undefined

const probeOf = (response: ServerResponse & Probed): (() => void) | undefined => {
  if (response.writableEnded) return undefined
  if (response.headersSent) return response[probeProperty]
  return response.req.httpVersionMinor === 0 ? undefined : () => response.writeProcessing()
}
