/**
 * Version of a model whose file exports its declaration and layer, like a module for `nereid serve`. The layer defines
 * the behaviour of the model; its configuration is only documentation.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { create, equals } from "@bufbuild/protobuf"
import { Context, Effect, Layer } from "effect"
import * as ConfigurationMessage from "@nereid/core/internal/configuration/ConfigurationMessage"
import * as Contract from "@nereid/core/internal/contract/Contract"
import { compare, print } from "@nereid/core/internal/contract/ContractDifference"
import * as ExportedModels from "@nereid/core/internal/lifecycle/ExportedModels"
import { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import * as ConfigDefaults from "../config/ConfigDefaults.ts"
import { failure, invalid, type LoadFailure } from "../directory/LoadFailure.ts"
import type { VersionPlan } from "../plan/VersionPlan.ts"
import * as RepositoryContract from "../plan/RepositoryContract.ts"

/** Undefined for a module that exports no such model, or no layer. */
export const layer = (
  { config, labels, file }: VersionPlan,
  module: Readonly<Record<string, unknown>>,
): Layer.Layer<unknown, LoadFailure> | undefined => {
  const exported = Object.values(module)
  const model = exported.filter(ExportedModels.isModel).find(({ definition }) => definition.name === config.name)
  const [first, ...others] = new Set(exported.flatMap((value) => ExportedModels.layerOf(value) ?? []))
  if (model === undefined || first === undefined) return undefined
  const found = RepositoryContract.fromConfig(config, labels)
  // Sequences that only the module declares are not in the configuration.
  const documented = found.sequence === false ? { ...found, sequence: undefined } : found
  const differences = compare(Contract.fromDefinition(model.definition), documented, "same")
  if (differences.length > 0) {
    const message = `the configuration differs from ${file}: ${differences.map(print).join("; ")}`
    return Layer.effectContext(Effect.fail(invalid(message)))
  }
  if ([...config.input, ...config.output].some(({ reshape }) => reshape !== undefined)) {
    const message = `reshape is not supported for ${file}, which exports a model with its own shapes`
    return Layer.effectContext(Effect.fail(invalid(message)))
  }
  const built = ExportedModels.build([model], [first, ...others]).pipe(
    Effect.mapError((error) => failure(`${file}: ${errorMessage(error)}`)),
    Effect.flatMap((context) => {
      const typed = Context.get(context, model)
      const running = typed.model
      const isDecoupled = config.modelTransactionPolicy?.decoupled === true
      if (running.calls.decoupled !== isDecoupled) {
        const message = `the configuration declares the model as ${isDecoupled ? "" : "not "}decoupled, unlike ${file}`
        return Effect.fail(invalid(message))
      }
      const useless = withoutEffect(config, running)
      // The instances are those of the layer, even if a later configuration differs.
      const { description, calls, life } = running
      const fixed = new RunningModel({ description, calls, life: { ...life, regroup: undefined } })
      const provided = Effect.succeed(Context.add(context, model, { ...typed, model: fixed }))
      if (useless.length === 0) return provided
      const features = useless.join(", ")
      const warning = Effect.logWarning(
        `Model '${config.name}': ${features} of the configuration has no effect, because ${file} overrides it`,
      )
      return Effect.andThen(warning, provided)
    }),
  )
  return Layer.effectContext(built)
}

/** Returns the settings of the configuration that the module's model does not have. */
const withoutEffect = (config: ModelConfig, running: RunningModel): ReadonlyArray<string> => {
  const configured = ConfigDefaults.filled(ConfigurationMessage.make(running), [])
  const differs = (
    part: (config: ModelConfig) => Pick<ModelConfig, "instanceGroup"> | Pick<ModelConfig, "schedulingChoice">,
  ) => !equals(ModelConfigSchema, create(ModelConfigSchema, part(config)), create(ModelConfigSchema, part(configured)))
  const isCached = running.description.responseCache
  const isScheduled = config.schedulingChoice.case !== undefined
  const { instanceGroup } = ConfigDefaults.filled(create(ModelConfigSchema, { ...config, instanceGroup: [] }), [])
  // Groups that are the default may be filled in because the configuration lists none.
  const isListed = !equals(
    ModelConfigSchema,
    create(ModelConfigSchema, { instanceGroup }),
    create(ModelConfigSchema, { instanceGroup: config.instanceGroup }),
  )
  return [
    ...(isScheduled && differs(({ schedulingChoice }) => ({ schedulingChoice })) ? ["dynamic_batching"] : []),
    ...(isListed && differs(namelessGroups) ? ["instance_group"] : []),
    ...((config.responseCache?.enable ?? isCached) === isCached ? [] : ["response_cache"]),
    ...(config.modelWarmup.length > 0 ? ["model_warmup"] : []),
  ]
}

/** The instance groups without their names, which have no effect on a module. */
const namelessGroups = ({ instanceGroup }: ModelConfig): Pick<ModelConfig, "instanceGroup"> => ({
  instanceGroup: instanceGroup.map((group) => ({ ...group, name: "" })),
})
