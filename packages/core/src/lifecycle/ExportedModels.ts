/**
 * The exports of a user's module: models, which are classes, and the layers that provide them. Only building a layer
 * shows which models it provides. Finding and importing the module is up to the caller.
 */
import { Context, Data, Effect, Layer, Option, type Scope } from "effect"
import type { Definition } from "../model/Definition.ts"
import type { Inference } from "../call/Inference.ts"
import type { Fields } from "../model/Field.ts"
import { Registry } from "./Registry.ts"

/** A module whose models cannot be had, and why. */
export class ModuleError extends Data.TaggedError("ModuleError")<{ readonly message: string }> {}

/** A class that `Model.Service` makes, with its types erased. */
export type ExportedModel = Context.Key<unknown, Inference<Fields, Fields>> & {
  readonly definition: Definition<Fields, Fields>
}

export type ExportedLayer = Layer.Layer<unknown, unknown>

export type ExportedLayers = readonly [ExportedLayer, ...ReadonlyArray<ExportedLayer>]

export const isModel = (value: unknown): value is ExportedModel =>
  Context.isKey(value) && "definition" in value && typeof value.definition === "object"

/** The layer of an export: itself, or the layer of a model made by `Model.bind`. Undefined for other values. */
export const layerOf = (value: unknown): ExportedLayer | undefined => {
  if (isLayer(value)) return value
  return isModel(value) && "layer" in value && isLayer(value.layer) ? value.layer : undefined
}

const isLayer = (value: unknown): value is ExportedLayer => Layer.isLayer(value)

/** Builds the layers, with a registry for those that want one, and checks that they provide every model. */
export const build = (
  models: ReadonlyArray<ExportedModel>,
  layers: ExportedLayers,
): Effect.Effect<Context.Context<unknown>, unknown, Scope.Scope> => {
  const built = withServices(Layer.build(Layer.mergeAll(...layers).pipe(Layer.provide(Registry.layer))))
  return Effect.tap(built, (context) => {
    const missing = models.find((model) => Option.isNone(Context.getOption(context, model)))
    if (missing === undefined) return Effect.void
    const message = `no exported layer provides the exported model '${missing.definition.name}'`
    return Effect.fail(new ModuleError({ message }))
  })
}

/** Says which service a layer needs that nothing provides. */
export const withServices = <A, E, R>(build: Effect.Effect<A, E, R>): Effect.Effect<A, E | ModuleError, R> =>
  Effect.catchDefect(build, (defect) => {
    const missing = /^Service not found: (\S+)/.exec(defect instanceof Error ? defect.message : "")?.[1]
    if (missing === undefined) return Effect.die(defect)
    const message = `a layer requires ${missing}: add the layer that provides it with Layer.provide(...)`
    return Effect.fail(new ModuleError({ message }))
  })
