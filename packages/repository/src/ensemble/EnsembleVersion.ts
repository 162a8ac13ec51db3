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
import { invalid, type LoadFailure } from "../directory/LoadFailure.ts"
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
  const responseCache = config.responseCache?.enable === true
  const ensemble: EnsembleDefinition = { name, signature, inner, maxBatchSize, steps }
  return Effect.flatMap(
    Ensemble.make({
      ...ensemble,
      version,
      batching,
      responseCache,
      maxInflightRequests: EnsembleConfig.scheduling(config)?.maxInflightRequests ?? 0,
      resolve: () => EnsembleCheck.resolve(ensemble, otherModels),
    }),
    ({ running, relink }): Effect.Effect<StoredVersion, LoadFailure> => {
      const version: StoredVersion = {
        running,
        configuration: () => ({
          ...config,
          modelTransactionPolicy: create(ModelTransactionPolicySchema, { decoupled: running.calls.decoupled }),
        }),
        problem: relink,
        regroup: () => Effect.die("An ensemble has no instances. This is a bug."),
      }
      // The members are valid, so the load fails by the configuration of the ensemble.
      const problem = relink()
      return running.calls.decoupled && responseCache && problem !== undefined
        ? Effect.fail(invalid(problem))
        : Effect.succeed(version)
    },
  )
}
