/** The interfaces between a call and its connection. */
import type { CallHeaders } from "./CallHeaders.ts"
import type { CallEvents, CallStream, GrpcSession } from "./GrpcSession.ts"
import type { GrpcFailure } from "./GrpcFailure.ts"

/** A call as its connection starts it. */
export interface StartableCall extends CallEvents {
  readonly headers: CallHeaders
  readonly frame: Uint8Array
  /** Gives the call its stream. */
  readonly begin: (session: GrpcSession, stream: CallStream) => void
  readonly fail: (failure: GrpcFailure) => void
}

/** A connection as its calls use it. */
export interface CallConnection {
  /** Opens a stream for the call, the first one or another, and sends its message. */
  readonly start: (call: StartableCall) => void
  /** Returns why a session no longer responds; undefined if the session is intact. */
  readonly lost: (session: GrpcSession, streamError: Error | undefined) => GrpcFailure | undefined
}
