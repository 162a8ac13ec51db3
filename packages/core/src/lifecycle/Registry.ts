/**
 * The registry as an API for code: calls and inspects models by name, and loads, replaces and unloads them while
 * servers run. ModelStore.ts has the models that each server serves, and CodeModels.ts the life cycle of models in
 * code.
 */
import { Context, Effect, Layer, Scope } from "effect"
import { CodeModels, type Loading } from "./CodeModels.ts"
import type { RegisteredModels } from "./ModelLookup.ts"
import { Served } from "./Served.ts"

export type { Loading, Models, Refusal, RetireOptions, UnloadOptions } from "./CodeModels.ts"
export type { RegisteredModels } from "./ModelLookup.ts"
export type { LoadOverrides } from "./ModelRepository.ts"
export type { IndexEntry } from "./ModelStore.ts"
export type { RunningModel } from "../running/RunningModel.ts"

/** Service that calls models by name, and that loads, replaces and unloads models while the server runs. */
export class Registry extends Context.Service<Registry, RegisteredModels & Loading>()("@nereid/core/Registry") {
  /**
   * For handlers and programs: the models of the server that is built together with this layer, once it serves.
   *
   * ```ts
   * const ReadyLive = Model.each(
   *   Ready,
   *   Effect.map(Registry, (models) => ({ MODEL }) => ({ READY: models.isReady(MODEL) })),
   * )
   *
   * Server.layer([Ready, Bert]).pipe(Layer.provide([ReadyLive, BertLive]), Layer.provide(Registry.layer))
   * ```
   */
  static readonly layer: Layer.Layer<Registry | Served> = Layer.effectContext(
    Effect.flatMap(
      Effect.suspend(() => Current),
      (current) => (current === undefined ? shared : Effect.succeed(current)),
    ),
  )
}

/** The registry of the models being loaded, which they may use. */
const Current = Context.Reference<Context.Context<Registry | Served> | undefined>("@nereid/core/Registry/Current", {
  defaultValue: () => undefined,
})

const shared = Effect.gen(function* () {
  const code = new CodeModels(yield* Scope.Scope)
  const inCurrentScope = <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.provideService(change, Current, context)
  const registry: Registry["Service"] = Object.assign(code.models, {
    load: ((models, layer) => inCurrentScope(code.load(models, layer))) satisfies Loading["load"],
    replace: ((models, layer, options) =>
      inCurrentScope(code.replace(models, layer, options))) satisfies Loading["replace"],
    loadStored: code.loadStored,
    unload: code.unload,
  })
  const context = Context.add(Context.make(Registry, registry), Served, code)
  return context
})
