/**
 * Interface of a remote model to its protocol: sends a wire request and returns a wire response. GrpcChannel.ts and
 * HttpChannel.ts implement it, FetchChannel.ts for browsers, and ReplicaChannel.ts for several servers.
 */
import type { Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { GenerateModel } from "@nereid/core/internal/codec/generate/GenerateMessage"
import type { Cancel } from "@nereid/core/internal/request/Request"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"

/**
 * How a request failed, as far as the error does not say it. `unsent`: the server cannot have executed it. `lost`: its
 * connection ended, and the server may have executed it. `final`: the server forbids a retry. Absent for other errors
 * that the server reported.
 */
export type FailureCause = "unsent" | "lost" | "final"

export type ChannelReply = (outcome: Result.Result<WireResponse, InferenceError>, cause?: FailureCause) => void

/** Whether a server takes requests. `unknown`: it does not offer the check. */
export type Readiness = "ready" | "notReady" | "unreachable" | "unknown"

/** Takes the responses of a request, and their end. */
export interface ChannelReceiver {
  readonly response: (response: WireResponse) => void
  /** Called once, behind all responses; not after a cancel. */
  readonly end: (outcome: Result.Result<void, InferenceError>, cause?: FailureCause) => void
}

/** A request whose responses come. */
export interface ChannelStream {
  readonly cancel: Cancel
  /** Pauses or resumes the responses. The server waits meanwhile, as far as its protocol supports that. */
  readonly flow: (isPaused: boolean) => void
}

export interface Channel {
  /**
   * Sends a request, and opens a connection if necessary. Calls `reply` once, possibly before this returns. Returns a
   * function that cancels the request, also on the server; `reply` is not called after it. `timeoutMs` is sent to the
   * server; the caller enforces the timeout.
   */
  readonly infer: (wire: WireRequest, timeoutMs: number | undefined, reply: ChannelReply) => Cancel
  /**
   * The same for a caller that takes any number of responses.
   */
  readonly stream: (
    wire: WireRequest,
    timeoutMs: number | undefined,
    receiver: ChannelReceiver,
    model: GenerateModel,
  ) => ChannelStream
  /** Closes the connections, also under running calls: their replies say so. */
  readonly close: () => Promise<void>
}

/** A channel to a single server. */
export interface ServerChannel extends Channel {
  /** Asks the server whether it takes requests: by `grpc.health.v1`, or `/v2/health/ready`. Calls `reply` once. */
  readonly ready: (timeoutMs: number, reply: (readiness: Readiness) => void) => Cancel
}
