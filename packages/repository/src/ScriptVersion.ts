/**
 * A version of a model whose file is code: a script, on the thread that serves or in threads of its own, or a module that exports
 * a model as code has it.
 */
import { Effect, type Layer, Result } from "effect"
import type { NamedCalls } from "@nereid/core/NamedCalls"
import type { ServingOptions } from "@nereid/core/Provide"
import type { RepositoryModelClass } from "./Declaration.ts"
import * as InstanceGroups from "./InstanceGroups.ts"
import { LoadFailure } from "./LoadFailure.ts"
import type { ModelPlan, PlannedVersion } from "./ModelPlan.ts"
import * as ModuleVersion from "./ModuleVersion.ts"
import * as Script from "./Script.ts"
import * as ScriptThreads from "./ScriptThreads.ts"

export const layer = Effect.fnUntraced(function* (
  plan: ModelPlan,
  planned: PlannedVersion,
  declared: RepositoryModelClass,
  models: NamedCalls,
  serving: ServingOptions,
): Effect.fn.Return<Layer.Layer<unknown, { readonly message: string }>, LoadFailure> {
  const options = { ...serving, instances: InstanceGroups.options(plan.config) }
  const isThreaded = Result.mapError(ScriptThreads.isWanted(plan.config), (message) => new LoadFailure({ message }))
  if (yield* Effect.fromResult(isThreaded)) return ScriptThreads.layer(plan, planned, declared, options)
  const module = yield* Script.load(planned)
  const exported = module["default"] === undefined ? ModuleVersion.layer(plan, planned.file, module) : undefined
  return exported ?? (yield* Script.layer(module, { plan, planned, declared, models }, options))
})
