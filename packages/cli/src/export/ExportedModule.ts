/** The models of a module, built; and by which of its layers each is provided. */
import { Context, Effect, Layer, Option } from "effect"
import {
  type ExportedModel,
  isModel,
  layerOf,
  ModuleError,
  withServices,
} from "@nereid/core/internal/lifecycle/ExportedModels"
import { Registry } from "@nereid/core/Registry"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"

export interface BuiltModel {
  readonly model: ExportedModel
  readonly running: RunningModel
  /** Export names of the model and its layer. */
  readonly names: ReadonlyArray<string>
  /** Models that its layer provides as well. */
  readonly otherModels: ReadonlyArray<string>
}

/** Builds models for as long as the scope is open: those of `modelNames`, or all if that is empty. */
export const build = Effect.fn("ExportedModule.build")(function* (
  exported: Readonly<Record<string, unknown>>,
  modelNames: ReadonlyArray<string>,
) {
  const scope = yield* Effect.scope
  const memoMap = Layer.makeMemoMapUnsafe()
  const models = new Map<ExportedModel, string>()
  const layers: Array<{ readonly name: string; readonly context: Context.Context<unknown> }> = []
  for (const [name, value] of Object.entries(exported)) if (isModel(value)) models.set(value, models.get(value) ?? name)
  for (const [name, value] of Object.entries(exported)) {
    const exportedLayer = layerOf(value)
    if (exportedLayer === undefined) continue
    // Builds all layers with one memo map, as in a server.
    const layer = Layer.provide(exportedLayer, Registry.layer)
    layers.push({ name, context: yield* withServices(Layer.buildWithMemoMap(layer, memoMap, scope)) })
  }
  const chosen = [...models].filter(
    ([{ definition }]) => modelNames.length === 0 || modelNames.includes(definition.name),
  )
  const built: Array<BuiltModel> = []
  for (const [model, name] of chosen) {
    const provider = layers.find(({ context }) => Option.isSome(Context.getOption(context, model)))
    if (provider === undefined) {
      const message = `no exported layer provides the exported model '${model.definition.name}'`
      return yield* new ModuleError({ message })
    }
    const others = [...models.keys()].filter(
      (other) => other !== model && Option.isSome(Context.getOption(provider.context, other)),
    )
    built.push({
      model,
      running: Context.get(provider.context, model).model,
      names: [...new Set([name, provider.name])],
      otherModels: others.map(({ definition }) => definition.name),
    })
  }
  return built
})
