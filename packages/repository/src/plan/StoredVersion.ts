/** Loaded version of a model of a repository, for any backend. */
import type { Effect, Scope } from "effect"
import type * as InstanceSet from "@nereid/core/internal/instance/InstanceSet"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { ModelConfig } from "@nereid/protocol/model_config"
import type { LoadFailure } from "../directory/LoadFailure.ts"

export interface StoredVersion {
  readonly running: RunningModel
  /** As it runs now, instances included. */
  readonly configuration: () => ModelConfig
  /**
   * Loads the instances that this configuration has in addition. Once it is committed, they execute batches, and those that the
   * configuration does not have are released; without that, nothing has changed at the end of the scope.
   */
  readonly regroup: (config: ModelConfig) => Effect.Effect<InstanceSet.PreparedInstances, LoadFailure, Scope.Scope>
  /** Why it takes no requests with the other models that there are now; absent where they do not matter. */
  readonly problem?: () => string | undefined
}
