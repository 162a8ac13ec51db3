/**
 * One HTTP/2 session to a server, as calls use it. NodeSession.ts implements it on node:http2, OwnSession.ts on
 * `@nereid/http2`. GrpcConnection.ts opens and replaces sessions.
 */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import type { ServerUrl } from "@nereid/core/internal/wire/ServerUrl"
import { connectionLost } from "../channel/ConnectionLost.ts"
import type { CallHeaders, ResponseHeaders } from "./CallHeaders.ts"
import * as GrpcFailure from "./GrpcFailure.ts"

/** The stream of a call, whose request is sent. */
export interface CallStream {
  /** Whether the whole request was sent. */
  readonly isSent: boolean
  /** Holds the response back, until `resume`. */
  readonly pause: () => void
  readonly resume: () => void
  /** Resets the stream. Events may still follow. */
  readonly cancel: () => void
}

/** Events of the stream of a call. None comes before its session has returned the stream. */
export interface CallEvents {
  readonly onHeaders: (headers: ResponseHeaders) => void
  /** Returns whether the chunk may still be read after the call; otherwise its memory may be freed. */
  readonly onData: (chunk: Uint8Array) => boolean
  readonly onTrailers: (trailers: ResponseHeaders) => void
  readonly onEnd: () => void
  /**
   * The stream has closed, with a code of HTTP/2. `isUnsent`: the server has not begun with the request. `error`: why
   * the stream was lost.
   */
  readonly onClose: (code: number | undefined, isUnsent: boolean, error: Error | undefined) => void
}

export interface GrpcSession {
  /** Whether the session accepts another call. */
  readonly isUsable: boolean
  /**
   * Opens a stream for one call, and sends the request.
   * @throws if the headers are invalid, or the session is no longer usable
   */
  readonly request: (headers: CallHeaders, frame: Uint8Array, events: CallEvents) => CallStream
  /** Returns why the session was lost, given the error of a stream; undefined while it is open. */
  readonly lost: (streamError: Error | undefined) => GrpcFailure.GrpcFailure | undefined
  readonly onClosed: (run: () => void) => void
  /** Takes no more calls; those on it go on to their ends. */
  readonly retire: () => void
  readonly destroy: () => void
}

/** The failure of a call whose session was lost, or was never connected. */
export const lostFailure = (
  endpoint: ServerUrl,
  isConnected: boolean,
  error: Error | undefined,
): GrpcFailure.GrpcFailure => {
  const message = connectionLost(endpoint, isConnected, error)
  return GrpcFailure.failure(GrpcCode.UNAVAILABLE, message, isConnected ? "lost" : "unsent")
}
