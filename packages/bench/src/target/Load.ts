/**
 * Interfaces of a load: a target, and connections that send requests and check their replies. GrpcUnary.ts,
 * GrpcStream.ts and HttpInfer.ts implement the transport. ClosedLoop.ts and OpenLoop.ts decide when to send requests.
 */

/** Callbacks of a connection, called once per request. `startedAt` is the argument of `send`. */
export interface Replies {
  /** `problem`: what was wrong with the reply, if anything. */
  readonly onReply: (startedAt: number, problem: string | undefined) => void
  /** The connection ended before the server began with the request, which may go to another one. */
  readonly onUnseen: (startedAt: number) => void
}

export interface Connection {
  /** Whether another request may be sent on it: not after it has ended, or is about to. */
  readonly accepts: boolean
  /** Sends the next request, made beforehand. `startedAt`: when it was meant to be sent, as `performance.now()` counts. */
  readonly send: (startedAt: number) => void
  readonly close: () => void
}

export interface Target {
  /** Requests that one connection carries at a time. */
  readonly perConnection: number
  readonly connect: (replies: Replies) => Promise<Connection>
}
