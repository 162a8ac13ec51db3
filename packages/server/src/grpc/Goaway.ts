/**
 * Ends an HTTP/2 connection with GOAWAY. Keepalive.ts and the stop of a server decide when.
 *
 * A call that arrives after a GOAWAY is dropped, and its client retries it on another connection. gRPC's own servers
 * first send a GOAWAY that still accepts calls, which reduces retries. Node does not support that: its HTTP/2 accepts
 * no calls after any GOAWAY, and a grpc-js client may then wait forever.
 */
import { constants, type ServerHttp2Session } from "node:http2"

/** Closes once the calls in flight are answered. */
export const gracefully = (session: ServerHttp2Session, reason: string): void => {
  if (session.destroyed || session.closed) return
  session.goaway(constants.NGHTTP2_NO_ERROR, lastStream, Buffer.from(reason))
  session.close()
}

/**
 * Closes once the calls in flight are answered, or after `limitMillis`. The first GOAWAY has no error code: with one,
 * clients on node:http2 would fail the calls in flight.
 */
export const within = (session: ServerHttp2Session, reason: string, limitMillis: number): void => {
  gracefully(session, reason)
  const timer = setTimeout(() => atOnce(session, reason), limitMillis)
  session.on("close", () => clearTimeout(timer))
}

/** Calls in flight end with it. */
export const atOnce = (session: ServerHttp2Session, reason: string): void => {
  if (session.destroyed) return
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, lastStream, Buffer.from(reason))
  // Says it once more, without the reason; without an error it would say that all is well, and callers report the last.
  session.destroy(new Error(reason), constants.NGHTTP2_ENHANCE_YOUR_CALM)
}

/** Node interprets the value as the last stream id. */
const lastStream = 0
