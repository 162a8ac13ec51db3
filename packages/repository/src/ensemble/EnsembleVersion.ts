/**
 * A version of a model that is an ensemble: made of its configuration and of the models that a registry has at any
 * time.
 */
import { create } from "@bufbuild/protobuf"
import { Effect } from "effect"
import * as Ensemble from "@nereid/core/internal/ensemble/Ensemble"
import type { EnsembleDefinition } from "@nereid/core/internal/ensemble/EnsembleGraph"
import { type ModelConfig, ModelTransactionPolicySchema } from "@nereid/protocol/model_config"
import * as Declaration from "../config/Declaration.ts"
import type { StoredVersion } from "../plan/StoredVersion.ts"
import type { OtherModels } from "../plan/OtherModels.ts"
import * as EnsembleCheck from "./EnsembleCheck.ts"
import * as EnsembleConfig from "../config/EnsembleConfig.ts"

export const load = (
  config: ModelConfig,
  { definition }: Declaration.RepositoryModelClass,
  otherModels: OtherModels,
) => {
  const { name, version, signature, maxBatchSize, batching } = definition
  const steps = EnsembleConfig.steps(config)
  const inner = Declaration.reshapedSignature(config, signature)
  const ensemble: EnsembleDefinition = { name, signature, inner, maxBatchSize, steps }
  return Effect.map(
    Ensemble.make({
      ...ensemble,
      version,
      batching,
      responseCache: config.responseCache?.enable === true,
      maxInflightRequests: EnsembleConfig.scheduling(config)?.maxInflightRequests ?? 0,
      resolve: () => EnsembleCheck.resolve(ensemble, otherModels),
    }),
    ({ running, relink }): StoredVersion => ({
      running,
      configuration: () => ({
        ...config,
        modelTransactionPolicy: create(ModelTransactionPolicySchema, { decoupled: running.calls.decoupled }),
      }),
      problem: relink,
      regroup: () => Effect.die("An ensemble has no instances. This is a bug."),
    }),
  )
}
