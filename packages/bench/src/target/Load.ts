/**
 * Interfaces of a load: a target, and connections that send requests and check their replies. GrpcUnary.ts,
 * GrpcStream.ts and HttpInfer.ts implement the transport. ClosedLoop.ts and OpenLoop.ts decide when to send requests.
 */

/** Callbacks of a connection, called once per request. `startedAt` is the argument of `send`. */
export interface Replies {
  /** Reports a reply. `problem` describes an invalid reply, otherwise undefined. */
  readonly onReply: (startedAt: number, problem: string | undefined) => void
  /** Reports that the connection ended before the server began the request, which can be sent on another one. */
  readonly onUnseen: (startedAt: number) => void
}

/** An open connection to a server. */
export interface Connection {
  /** Whether the connection accepts another request; false after it has ended, or is about to. */
  readonly accepts: boolean
  /** Sends the next request. `startedAt` is its scheduled time, in milliseconds of `performance.now()`. */
  readonly send: (startedAt: number) => void
  readonly close: () => void
}

/** A server, and the requests to send to it. */
export interface Target {
  /** Maximum requests in flight on one connection. */
  readonly perConnection: number
  readonly connect: (replies: Replies) => Promise<Connection>
}
