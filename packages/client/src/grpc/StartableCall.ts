/** The interfaces between a call and its connection. */
import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2"
import type { GrpcSession } from "./GrpcSession.ts"
import type { GrpcFailure } from "./GrpcFailure.ts"

/** A call as its connection starts it. */
export interface StartableCall {
  readonly headers: OutgoingHttpHeaders
  readonly frame: Uint8Array
  readonly listen: (session: GrpcSession, stream: ClientHttp2Stream) => void
  readonly fail: (failure: GrpcFailure) => void
}

/** A connection as its calls use it. */
export interface CallConnection {
  /** Opens a stream for the call, the first one or another, and sends its message. */
  readonly start: (call: StartableCall) => void
  /** Returns why a session no longer responds; undefined if the session is intact. */
  readonly lost: (session: GrpcSession, streamError: Error | undefined) => GrpcFailure | undefined
}
