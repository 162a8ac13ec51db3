/** Loaded version of a model of a repository, for any backend. */
import type { Effect, Scope } from "effect"
import type * as InstanceSet from "@nereid/core/internal/instance/InstanceSet"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { ModelConfig } from "@nereid/protocol/model_config"
import type { LoadFailure } from "../directory/LoadFailure.ts"

export interface StoredVersion {
  readonly running: RunningModel
  /** Returns the current configuration, including instances. */
  readonly configuration: () => ModelConfig
  /**
   * Loads the instances that this configuration has in addition. Once it is committed, they execute batches, and those
   * that the configuration does not have are released; without that, nothing has changed at the end of the scope.
   */
  readonly regroup: (config: ModelConfig) => Effect.Effect<InstanceSet.PreparedInstances, LoadFailure, Scope.Scope>
  /**
   * Returns why the version cannot take requests with the current other models; absent if it does not depend on any.
   */
  readonly problem?: () => string | undefined
}
