/**
 * The registry as code has it: models by name, to be asked and looked at, and to be loaded, replaced and unloaded while servers
 * run. What each server has of it is OpenRegistry.ts's, how models come and go Loader.ts's.
 */
import { Context, Effect, Layer, Scope } from "effect"
import * as Loader from "./Loader.ts"
import * as OpenRegistry from "./OpenRegistry.ts"
import type { RunningModel } from "../running/RunningModel.ts"

export type { OpenRegistry, RegisteredModels } from "./OpenRegistry.ts"
export type { Loading, Models, Refusal, RetireOptions, UnloadOptions } from "./Loader.ts"

export class Registry extends Context.Service<Registry, OpenRegistry.RegisteredModels & Loader.Loading>()(
  "@nereid/core/internal/lifecycle/Registry",
) {
  /**
   * For handlers and programs: the models that the server serves which is built together with this layer, once it has begun to.
   *
   * ```ts
   * const RouteLive = Model.each(Route, Effect.map(Registry, (models) => ({ MODEL, x }) => models.infer(MODEL, { x })))
   *
   * Server.layer([Route, Bert]).pipe(Layer.provide([RouteLive, BertLive]), Layer.provide(Registry.layer))
   * ```
   */
  static readonly layer: Layer.Layer<Registry | Served> = Layer.effectContext(
    Effect.flatMap(
      Effect.suspend(() => Current),
      (current) => (current === undefined ? shared : Effect.succeed(current)),
    ),
  )

  /** @throws TypeError where two models have the same name and version */
  static make(models: ReadonlyArray<RunningModel>): OpenRegistry.OpenRegistry {
    return OpenRegistry.make(models)
  }
}

/** Where servers say what they serve, for Registry.layer. */
export class Served extends Context.Service<
  Served,
  {
    /** Until the scope closes. Fails where a model that is loaded already has the name and version of one of these. */
    readonly include: Loader.Loader["include"]
    /** Of models in code: those that come, that go, and that could not be loaded. */
    readonly index: Loader.Loader["index"]
  }
>()("@nereid/core/Registry/Served") {}

/** The registry of what is being loaded, which has it for its own as well. */
const Current = Context.Reference<Context.Context<Registry | Served> | undefined>("@nereid/core/Registry/Current", {
  defaultValue: () => undefined,
})

const shared = Effect.gen(function* () {
  const { include, index, load, loadStored, models, replace, unload } = Loader.make(yield* Scope.Scope)
  const own = <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.provideService(change, Current, context)
  const registry: Registry["Service"] = Object.assign(models, {
    load: ((models, layer) => own(load(models, layer))) satisfies Loader.Loading["load"],
    replace: ((models, layer, options) => own(replace(models, layer, options))) satisfies Loader.Loading["replace"],
    loadStored,
    unload,
  })
  const context = Context.add(Context.make(Registry, registry), Served, Served.of({ include, index }))
  return context
})
