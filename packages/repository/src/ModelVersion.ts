/** One version of a model, loaded: from its plan to something that takes requests, for as long as the scope is open. */
import { Context, Effect, Layer, type Scope } from "effect"
import type { ServingOptions } from "@nereid/core/Provide"
import type { RunningModel } from "@nereid/core/RunningModel"
import * as Declaration from "./Declaration.ts"
import { LoadFailure } from "./LoadFailure.ts"
import type * as ModelPlan from "./ModelPlan.ts"
import * as OnnxVersion from "./OnnxVersion.ts"
import * as ScriptVersion from "./ScriptVersion.ts"

export const load = Effect.fnUntraced(function* (
  plan: ModelPlan.ModelPlan,
  planned: ModelPlan.PlannedVersion,
): Effect.fn.Return<RunningModel, LoadFailure, Scope.Scope> {
  const { config, warmUp } = plan
  const serving: ServingOptions = {
    ...(warmUp.length > 0 ? { warmUp: { inputs: warmUp } } : {}),
    responseCache: config.responseCache?.enable === true,
  }
  const declared = Declaration.make(plan, planned.version)
  const layer = yield* config.backend === "nereid"
    ? ScriptVersion.layer(plan, planned, declared, serving)
    : OnnxVersion.layer(plan, planned, declared, serving)
  const built = Effect.mapError(Layer.build(layer), ({ message }) => new LoadFailure({ message }))
  const { model } = Context.get(yield* built, declared)
  return { ...model, configuration: config }
})
