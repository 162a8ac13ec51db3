/**
 * Interfaces of a load: a target, and connections that send requests and check their replies. GrpcUnary.ts,
 * GrpcStream.ts and HttpInfer.ts implement the transport. ClosedLoop.ts and OpenLoop.ts decide when to send requests.
 */

import { constVoid } from "effect/Function"

/**
 * Callbacks of a connection, called once per request that is not cancelled. `startedAt` and `deadline` are the
 * arguments of `send`.
 */
export interface Replies {
  /**
   * Reports a reply. `problem` describes an invalid reply, otherwise undefined. `overload` is set if the server reports
   * that it has too much to do.
   */
  readonly onReply: (startedAt: number, problem: string | undefined, overload?: Overload) => void
  /** Reports that the connection ended before the server began the request, which can be sent on another one. */
  readonly onUnseen: (startedAt: number, deadline?: CallDeadline) => void
}

/** The server refused the request, or has found that its deadline has passed. */
export type Overload = "refused" | "late"

/** The time at which the caller of one request gives up. */
export class CallDeadline {
  /** In milliseconds of `performance.now()`. */
  readonly at: number
  /** Whether the request tells the server how much time is left. */
  readonly isTold: boolean
  /** Cancels the request, whose reply is not reported any more. Set by the connection that sends it. */
  cancel: () => void = constVoid

  constructor(at: number, isTold: boolean) {
    this.at = at
    this.isTold = isTold
  }

  /** Whole milliseconds that are left now, at least 1; undefined if the server is not told. */
  get told(): number | undefined {
    return this.isTold ? Math.max(1, Math.ceil(this.at - performance.now())) : undefined
  }
}

/** An open connection to a server. */
export interface Connection {
  /** Whether the connection accepts another request; false after it has ended, or is about to. */
  readonly accepts: boolean
  /** Sends the next request. `startedAt` is its scheduled time, in milliseconds of `performance.now()`. */
  readonly send: (startedAt: number, deadline?: CallDeadline) => void
  readonly close: () => void
}

/** A server, and the requests to send to it. */
export interface Target {
  /** Maximum requests in flight on one connection. */
  readonly perConnection: number
  readonly connect: (replies: Replies) => Promise<Connection>
}
