/** What a call and its connection know of each other. */
import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2"
import type { GrpcSession } from "./GrpcSession.ts"
import type { GrpcFailure } from "./GrpcStatus.ts"

/** A call that waits for its stream. */
export interface StartableCall {
  readonly headers: OutgoingHttpHeaders
  readonly frame: Uint8Array
  readonly listen: (session: GrpcSession, stream: ClientHttp2Stream) => void
  readonly fail: (failure: GrpcFailure) => void
}

/** The connection of a call. */
export interface CallConnection {
  /** Gives the call a stream, the first one or another, and sends its message. */
  readonly start: (call: StartableCall) => void
  /** Why a session answers no more; undefined where that is not the session's fault. */
  readonly lost: (session: GrpcSession, own: Error | undefined) => GrpcFailure | undefined
}
