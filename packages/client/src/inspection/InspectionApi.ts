/** Requests for information about a server's models, over either protocol. */
import type { Effect, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { ModelMetadataResponse, RepositoryIndexResponse_ModelIndex } from "@nereid/protocol/grpc_service"
import type { ModelConfig } from "@nereid/protocol/model_config"

export interface Inspection {
  readonly metadata: (model: string) => Effect.Effect<ModelMetadataResponse, InferenceError>
  /** Configuration, or the reason why the server offers none; not all servers do. */
  readonly configuration: (model: string) => Effect.Effect<Result.Result<ModelConfig, string>, InferenceError>
  /** Fails where the model takes no requests now. */
  readonly ready: (model: string) => Effect.Effect<void, InferenceError>
  /** Index of all models, loaded or not. */
  readonly index: Effect.Effect<ReadonlyArray<RepositoryIndexResponse_ModelIndex>, InferenceError>
}
