/** One version of a model, loaded: from its plan to something that takes requests, for as long as a scope is open. */
import { CacheSettings } from "@nereid/core/internal/cache/CacheSettings"
import { RateLimitError } from "@nereid/core/internal/limiter/RateLimitError"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Context, Effect, Layer, type Scope } from "effect"
import { WarmUpFailed } from "@nereid/core/Model"
import type * as InstanceSet from "@nereid/core/internal/instance/InstanceSet"
import type { ServingOptions } from "@nereid/core/internal/provide/Provide"
import type { ModelLife } from "@nereid/core/internal/running/ModelLife"
import { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as Declaration from "../config/Declaration.ts"
import * as InstanceGroups from "../config/InstanceGroups.ts"
import * as PythonBackend from "../config/PythonBackend.ts"
import { failure, invalid, LoadFailure } from "../directory/LoadFailure.ts"
import * as Revision from "../directory/Revision.ts"
import type { OtherModels } from "../plan/OtherModels.ts"
import type * as ScriptVersion from "../script/ScriptVersion.ts"
import type { StoredVersion } from "../plan/StoredVersion.ts"
import type { VersionPlan } from "../plan/VersionPlan.ts"

/** Does not probe a model that takes no requests. */
const whileReady = ({ isReady }: ModelLife, probe: Effect.Effect<boolean>): Effect.Effect<boolean> =>
  Effect.suspend(() => (isReady() ? probe : Effect.succeed(false)))

/** Instances of a module's layer, which a configuration cannot change. */
const fixed = Effect.succeed<InstanceSet.PreparedInstances>({ commit: Effect.void })

/**
 * The options of its response cache. It has a revision where servers share responses, unless its code is in the backend
 * directory, which may differ between them.
 */
const cacheOptions = Effect.fnUntraced(function* ({ config, path, version }: VersionPlan) {
  const { shared } = yield* CacheSettings
  const revision = shared && !PythonBackend.isShared(config) && (yield* Revision.make(path, version, config))
  return revision === undefined || revision === false ? {} : { revision }
})

/** Resources that the rate limiter cannot provide are a wrong configuration. */
const limited = <A, E, R>(build: Effect.Effect<A, E, R>): Effect.Effect<A, E | LoadFailure, R> =>
  Effect.catchDefect(build, (defect) =>
    defect instanceof RateLimitError ? Effect.fail(invalid(defect.message)) : Effect.die(defect),
  )

/** Its layer, by the code of its backend, which is imported with the first such version. */
const layerOf = Effect.fnUntraced(function* (
  plan: VersionPlan,
  declared: Declaration.RepositoryModelClass,
  otherModels: OtherModels,
  serving: ServingOptions,
): Effect.fn.Return<ScriptVersion.ScriptVersion, LoadFailure, Scope.Scope> {
  if (plan.config.backend === "nereid") {
    const ScriptVersion = yield* Effect.promise(() => import("../script/ScriptVersion.ts"))
    return yield* ScriptVersion.make(plan, declared, otherModels.calls, serving)
  }
  if (PythonBackend.runsPython(plan.config)) {
    const PythonVersion = yield* Effect.promise(() => import("../python/PythonVersion.ts"))
    return yield* PythonVersion.make(plan, declared, otherModels.python, serving)
  }
  const OnnxVersion = yield* Effect.promise(() => import("../onnx/OnnxVersion.ts"))
  return { layer: yield* OnnxVersion.layer(plan, declared, serving) }
})

export const load = Effect.fn("VersionLoader.load")(function* (
  plan: VersionPlan,
  otherModels: OtherModels,
): Effect.fn.Return<StoredVersion, LoadFailure, Scope.Scope> {
  const { config, warmUp, version } = plan
  const declared = yield* Effect.try({
    try: () => Declaration.make(plan),
    catch: (error) => failure(errorMessage(error)),
  })
  if (config.platform === "ensemble") {
    const EnsembleVersion = yield* Effect.promise(() => import("../ensemble/EnsembleVersion.ts"))
    return yield* EnsembleVersion.load(config, declared, otherModels)
  }
  const serving: ServingOptions = {
    ...(warmUp.length > 0 ? { warmUp } : {}),
    responseCache: config.responseCache?.enable === true && (yield* cacheOptions(plan)),
  }
  const { layer, probe } = yield* layerOf(plan, declared, otherModels, serving)
  const built = Effect.mapError(limited(Layer.build(layer)), (error) =>
    error instanceof LoadFailure
      ? error
      : error instanceof WarmUpFailed
        ? invalid(`failed to run warmup sample '${error.sample}': ${error.reason}; `)
        : failure(error.message),
  )
  const { model } = Context.get(yield* built, declared)
  const { description, calls, life } = model
  let current = config
  return {
    running: new RunningModel({
      // A module's model has the version of its declaration.
      description: { ...description, version: String(version) },
      calls,
      life: probe === undefined ? life : { ...life, probe: whileReady(life, probe) },
    }),
    configuration: () => current,
    regroup: (next) =>
      limited(life.regroup?.(InstanceGroups.options(next)) ?? fixed).pipe(
        Effect.mapError((error) => (error instanceof LoadFailure ? error : failure(errorMessage(error)))),
        Effect.map(({ commit }) => {
          const { instanceGroup, versionPolicy } = next
          const showProblem = Effect.sync(
            () => (current = { ...current, instanceGroup, ...(versionPolicy && { versionPolicy }) }),
          )
          return { commit: Effect.andThen(showProblem, commit) }
        }),
      ),
  }
})
