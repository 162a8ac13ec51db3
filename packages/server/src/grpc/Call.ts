/**
 * One RPC between an implementation of HTTP/2 and what answers it: bytes come in at a Receiver, the answer leaves by a
 * Responder. GrpcStream.ts is both sides' meeting for node:http2; another implementation of HTTP/2 needs no more than these.
 */
import type { Prepare } from "../Preparation.ts"
import type { ReceiveBudget } from "../port/ReceiveBudget.ts"
import type { Gateway } from "../Gateway.ts"
import type { GrpcStatus } from "./GrpcStatus.ts"

/** Takes what the caller sends, in this order. */
export interface Receiver {
  /** Bytes of messages with their prefixes, cut anywhere. They are the receiver's now. */
  readonly onData: (chunk: Uint8Array) => void
  /** The caller has sent everything. It also may come when the caller breaks off. */
  readonly onEnd: () => void
  /** The call is gone: nobody waits for an answer any more. */
  readonly onClose: () => void
}

/** Where the answer goes. Harmless once the call has ended or is gone. */
export interface Responder {
  /** The only message of the answer, with its prefix, and success: all of it at once. */
  readonly reply: (frame: Uint8Array) => void
  /** Messages of an answer that goes on, each with its prefix. False where enough of them wait to be sent. */
  readonly send: (frames: Uint8Array) => boolean
  /** Calls back once, when `send` takes more after it was false. */
  readonly onceWritable: (resume: () => void) => void
  /** Success, behind everything that was sent. */
  readonly end: () => void
  /** Failure, behind everything that was sent. */
  readonly fail: (status: GrpcStatus) => void
  /** No more bytes come in until `resume`, apart from what is on its way; the caller comes to wait. */
  readonly pause: () => void
  readonly resume: () => void
}

/** What the call says about itself. */
export interface CallMetadata {
  /** Its `grpc-timeout`. */
  readonly timeout: string | undefined
  /** Whether the first failure of a request is that of the whole stream. */
  readonly endsAtError: boolean
  /** What is to be done with its requests ahead of anything else. */
  readonly prepare: Prepare
}

export interface CallOptions {
  readonly gateway: Gateway
  /** The most bytes of a message. */
  readonly maxMessageSize: number
  /** How long a message may take to arrive. */
  readonly receiveTimeoutMillis: number
  /** For messages that are not whole; shared by all calls. */
  readonly receiveBudget: ReceiveBudget
  readonly logDefect: (defect: unknown) => void
}
