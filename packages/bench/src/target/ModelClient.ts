/**
 * A model on a server over one protocol: its metadata, a request whose reply is decoded in full, and the target of a
 * load. GrpcModel.ts and HttpModel.ts are the two there are.
 */
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { ModelMetadataResponse, ModelStatisticsResponse } from "@nereid/protocol/grpc_service"
import type { ModelConfig } from "@nereid/protocol/model_config"
import type { Target } from "./Load.ts"

/** Protocol of requests: `http` sends tensors as binary data, `http-json` as text. */
export type Protocol = "grpc" | "grpc-stream" | "http" | "http-json"

export interface ModelName {
  readonly name: string
  /** Empty for the server's choice. */
  readonly version: string
}

/** One request's replies: more than one only of decoupled models. */
export interface ModelReply {
  readonly responses: ReadonlyArray<WireResponse>
  /** Bytes of the reply, as the load counts them. */
  readonly length: number
}

/** A request that a load sends, and how long its reply is; undefined where that may be any length. */
export interface ExpectedRequest {
  readonly request: WireRequest
  readonly replyLength: number | undefined
}

export interface ModelClient {
  /**
   * Reads the model's metadata.
   * @throws Error if the server is unreachable or lacks the model
   */
  readonly metadata: () => Promise<ModelMetadataResponse>
  /** Undefined where the server has no such endpoint. */
  readonly config: () => Promise<ModelConfig | undefined>
  /** Undefined where the server has no such endpoint. */
  readonly statistics: () => Promise<ModelStatisticsResponse | undefined>
  /**
   * Sends one request and decodes the reply.
   * @throws Error if the reply is an error, or is malformed
   */
  readonly infer: (request: WireRequest) => Promise<ModelReply>
  readonly target: (requests: readonly [ExpectedRequest, ...ReadonlyArray<ExpectedRequest>], traits: Traits) => Target
  readonly close: () => void
}

/** The traits of a model by which a load matches replies to requests. */
export interface Traits {
  readonly decoupled: boolean
  /** Whether replies have the ids of their requests. */
  readonly hasIds: boolean
}
