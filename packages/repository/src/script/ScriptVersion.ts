/**
 * Version of a model whose file is code: a script, on the server's thread or in worker threads, or a module that
 * exports a model.
 */
import { Effect, type Layer, Result } from "effect"
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import type { ServingOptions } from "@nereid/core/internal/provide/Provide"
import type { RepositoryModelClass } from "../config/Declaration.ts"
import * as InstanceGroups from "../config/InstanceGroups.ts"
import { invalid, type LoadFailure } from "../directory/LoadFailure.ts"
import type { VersionPlan } from "../plan/VersionPlan.ts"
import * as ModuleVersion from "./ModuleVersion.ts"
import * as Script from "./Script.ts"
import { ScriptProbe } from "./ScriptProbe.ts"
import * as ScriptThreads from "./ScriptThreads.ts"

export interface ScriptVersion {
  readonly layer: Layer.Layer<unknown, { readonly message: string }>
  /** Reports whether the instances are ready; absent for instances in threads, whose `isReady` is not called. */
  readonly probe?: Effect.Effect<boolean>
}

export const make = Effect.fn("ScriptVersion.make")(function* (
  plan: VersionPlan,
  declared: RepositoryModelClass,
  models: NamedCalls,
  serving: ServingOptions,
): Effect.fn.Return<ScriptVersion, LoadFailure> {
  const options = { ...serving, instances: InstanceGroups.options(plan.config) }
  const isThreaded = Result.mapError(ScriptThreads.isWanted(plan.config), invalid)
  const wantsThreads = yield* Effect.fromResult(isThreaded)
  const realPath = yield* Script.locate(plan.file)
  if (wantsThreads) return { layer: ScriptThreads.layer(plan, realPath, declared, options) }
  const module = yield* Script.load(plan, realPath)
  const exported = module["default"] === undefined ? ModuleVersion.layer(plan, module) : undefined
  if (exported !== undefined) return { layer: exported }
  const probe = new ScriptProbe()
  return { layer: yield* Script.layer(module, { plan, declared, models, probe }, options), probe: probe.probe }
})
