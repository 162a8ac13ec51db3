/**
 * Ends an HTTP/2 connection with GOAWAY. Keepalive.ts and the stop of a server decide when.
 *
 * A call that arrives after the last GOAWAY is dropped. Some clients send it again on another connection; nginx, as a
 * proxy, does not. So a connection ends in two steps, as gRPC's own servers do it:
 *
 *   GOAWAY with the highest stream id, PING ─► calls that cross it are accepted ─► reply to the PING
 *     └─► GOAWAY with the id of the last call ─► calls in flight are answered ─► closed
 *
 * Node cannot send the first one: its HTTP/2 accepts no call after a GOAWAY of its own. So it is written to the socket,
 * where the bytes of each write of Node end with a frame. A socket with TLS takes one write at a time, which only Node
 * can keep apart, so there the first step is the PING alone.
 */
import { constVoid } from "effect/Function"
import type { ServerHttp2Session } from "node:http2"
import type { Socket } from "node:net"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"
import { isEncrypted } from "../port/Encrypted.ts"

/** A session of node:http2, and its socket, which the session hides. */
export interface Http2Connection {
  readonly session: ServerHttp2Session
  readonly socket: Socket
}

/** Longest time of the first step, in milliseconds: for clients that do not reply. */
const noticeMillis = 1_000

/** Connections in their first step, with what is called after it. */
const leaving = new WeakMap<ServerHttp2Session, Set<() => void>>()

/** Closes in two steps, once the calls in flight are answered. `onLast` is called once no further call is accepted. */
export const gracefully = ({ session, socket }: Http2Connection, reason: string, onLast = constVoid): void => {
  if (session.destroyed || session.closed) return onLast()
  const callbacks = leaving.get(session)
  if (callbacks !== undefined) return void callbacks.add(onLast)
  const called = new Set([onLast])
  leaving.set(session, called)
  const finish = () => {
    clearTimeout(timer)
    refuseFurther(session, reason)
    for (const call of called) call()
    called.clear()
  }
  const announce = () => {
    if (session.destroyed || session.closed) return
    if (!isEncrypted(socket)) socket.write(notice(reason))
    session.ping((error) => {
      if (error === null) finish()
    })
  }
  const timer = setTimeout(finish, noticeMillis)
  session.once("close", finish)
  // The first frame of a connection has to be our settings.
  if (session.pendingSettingsAck) session.once("localSettings", announce)
  else announce()
}

/**
 * Closes once the calls in flight are answered, or after `limitMillis`. No further call is accepted. The first GOAWAY
 * has no error code: with one, clients on node:http2 would fail the calls in flight.
 */
export const within = (session: ServerHttp2Session, reason: string, limitMillis: number): void => {
  refuseFurther(session, reason)
  const timer = setTimeout(() => atOnce(session, reason), limitMillis)
  session.on("close", () => clearTimeout(timer))
}

/** Calls in flight end with it. */
export const atOnce = (session: ServerHttp2Session, reason: string): void => {
  if (session.destroyed) return
  session.goaway(ErrorCode.ENHANCE_YOUR_CALM, lastStream, Buffer.from(reason))
  // Says it once more, without the reason; without an error it would say that all is well, and callers report the last.
  session.destroy(new Error(reason), ErrorCode.ENHANCE_YOUR_CALM)
}

/** Accepts no further call, and closes once those in flight are answered. */
const refuseFurther = (session: ServerHttp2Session, reason: string): void => {
  if (session.destroyed || session.closed) return
  session.goaway(ErrorCode.NO_ERROR, lastStream, Buffer.from(reason))
  session.close()
}

/** Node interprets the value as the last stream id. */
const lastStream = 0

/** Bytes of a frame before its payload. */
const headerLength = 9

const goawayType = 7

const highestStream = 2 ** 31 - 1

/** A GOAWAY that accepts every call (RFC 9113, section 6.8). */
const notice = (reason: string): Buffer => {
  const data = Buffer.from(reason)
  const length = 8 + data.length
  const frame = Buffer.alloc(headerLength + length)
  frame.writeUIntBE(length, 0, 3)
  frame.writeUInt8(goawayType, 3)
  frame.writeUInt32BE(highestStream, headerLength)
  data.copy(frame, headerLength + 8)
  return frame
}
