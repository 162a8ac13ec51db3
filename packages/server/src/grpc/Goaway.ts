/**
 * Ends an HTTP/2 connection with GOAWAY. Keepalive.ts and the stop of a server decide when.
 *
 * A call that comes after a GOAWAY is dropped, and its client tries it on another connection. gRPC's own servers announce
 * the end with a GOAWAY that still takes calls, so that fewer are tried twice. On node there is no such thing: its HTTP/2
 * takes no calls once it sent a GOAWAY, whatever that says, and grpc-js, on the other end of one, may wait for ever.
 */
import { constants, type ServerHttp2Session } from "node:http2"

/** Closes once the calls in flight are answered. */
export const gracefully = (session: ServerHttp2Session, reason: string): void => {
  if (session.destroyed || session.closed) return
  session.goaway(constants.NGHTTP2_NO_ERROR, lastStream, Buffer.from(reason))
  session.close()
}

/** Calls in flight end with it. */
export const atOnce = (session: ServerHttp2Session, reason: string): void => {
  if (session.destroyed) return
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, lastStream, Buffer.from(reason))
  // Says it once more, without the reason; without an error it would say that all is well, and callers report the last.
  session.destroy(new Error(reason), constants.NGHTTP2_ENHANCE_YOUR_CALM)
}

/** Node takes it for the last one that there was. */
const lastStream = 0
