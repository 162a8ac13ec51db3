/**
 * Interface of a remote model to its protocol: sends a wire request and returns a wire response. GrpcChannel.ts and
 * HttpChannel.ts implement it, and FetchChannel.ts for browsers.
 */
import type { Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { GenerateModel } from "@nereid/core/internal/codec/generate/GenerateMessage"
import type { Cancel } from "@nereid/core/internal/request/Request"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"

export type ChannelReply = (outcome: Result.Result<WireResponse, InferenceError>) => void

/** Takes the responses of a request, and their end. */
export interface ChannelReceiver {
  readonly response: (response: WireResponse) => void
  /** Called once, behind all responses; not after a cancel. */
  readonly end: (outcome: Result.Result<void, InferenceError>) => void
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
