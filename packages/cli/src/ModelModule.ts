/**
 * A user's module as the CLI reads it: every export that is a model, every export that is a layer, and its `routes`. Whether
 * the layers provide the models is known only when they are built.
 */
import { pathToFileURL } from "node:url"
import type { Definition, Inference } from "@nereid/core/Definition"
import type { Fields } from "@nereid/core/Field"
import { Registry } from "@nereid/core/Registry"
import type { Server } from "@nereid/server"
import { Context, Data, Effect, Layer, Option } from "effect"

/** A module that cannot be served, and why. */
export class ModuleError extends Data.TaggedError("ModuleError")<{ readonly message: string }> {}

/** What `Model.Service` makes, its types forgotten. */
export type ExportedModel = Context.Key<unknown, Inference<Fields, Fields>> & {
  readonly definition: Definition<Fields, Fields>
}

export interface ModelModule {
  readonly models: ReadonlyArray<ExportedModel>
  readonly layers: readonly [Layer.Layer<unknown, unknown>, ...ReadonlyArray<Layer.Layer<unknown, unknown>>]
  /** What it exports as `routes`. */
  readonly routes: Server.ModelRoutes
}

/** What is served beside it comes from elsewhere. Its layer provides nothing, which is all that no model needs. */
export const none: ModelModule = { models: [], layers: [Layer.empty as Layer.Layer<unknown>], routes: {} }

/** What a module exports, by name. */
export const exported = (path: string): Effect.Effect<{ readonly [name: string]: unknown }, ModuleError> =>
  Effect.tryPromise({
    try: (): Promise<{ readonly [name: string]: unknown }> => import(pathToFileURL(path).href),
    catch: (error) =>
      new ModuleError({ message: `${path} cannot be loaded: ${reason(error, pathToFileURL(path).href)}` }),
  })

export const load = Effect.fnUntraced(function* (path: string) {
  const module = yield* exported(path)
  const exports = [...new Set(Object.values(module))]
  const models = exports.filter(isModel)
  const [first, ...rest] = exports.filter(isLayer)
  if (models.length === 0) {
    return yield* new ModuleError({ message: `${path} exports no model: export the class that extends Model.Service` })
  }
  const names = new Set(models.map((model) => model.definition.name))
  if (names.size < models.length) {
    return yield* new ModuleError({ message: `${path} exports two models of the same name: ${[...names].join(", ")}` })
  }
  if (first === undefined) {
    return yield* new ModuleError({
      message: `${path} exports no layer: export what Model.each, Model.batch or Onnx.layer gave for ${[...names].join(", ")}`,
    })
  }
  const { routes = {} } = module
  if (!isRoutes(routes)) {
    const shape = '{ "POST /path": Model, … }, with exported models'
    return yield* new ModuleError({ message: `${path} exports routes that are not ${shape}` })
  }
  return { models, layers: [first, ...rest], routes } satisfies ModelModule
})

/** Builds the layers, with a registry for those that want one, and checks that they provide every model. */
export const build = Effect.fnUntraced(function* ({ models, layers }: ModelModule) {
  const context = yield* Layer.build(Layer.mergeAll(...layers).pipe(Layer.provide(Registry.layer))).pipe(
    Effect.catchDefect((defect) => {
      const missing = /^Service not found: (\S+)/.exec(defect instanceof Error ? defect.message : "")?.[1]
      if (missing === undefined) return Effect.die(defect)
      const message = `a layer needs ${missing}: export it with Layer.provide(...) of the layer that provides that`
      return Effect.fail(new ModuleError({ message }))
    }),
  )
  for (const model of models) {
    if (Option.isNone(Context.getOption(context, model))) {
      return yield* new ModuleError({
        message: `no exported layer provides the exported model '${model.definition.name}'`,
      })
    }
  }
  return context
})

/** With the place in the user's code, where one is known: nothing else of a stack helps them. */
const reason = (error: unknown, url: string): string => {
  if (!(error instanceof Error)) return String(error)
  if ("url" in error && error.url === url) return "there is no such file"
  const [head = "", frame = ""] = error.stack?.split("\n", 2) ?? []
  const place = /^(?:file:\/\/)?(\/.*:\d+)$/.exec(head)?.[1] ?? /^ +at .*?file:\/\/(\/.*:\d+:\d+)/.exec(frame)?.[1]
  return place === undefined ? error.message : `${error.message} (${place})`
}

export const isModel = (value: unknown): value is ExportedModel =>
  Context.isKey(value) && "definition" in value && typeof value.definition === "object"

/** Whether the paths are right is for the server to say. */
const isRoutes = (value: unknown): value is Server.ModelRoutes =>
  typeof value === "object" && value !== null && Object.values(value).every(isModel)

const isLayer = (value: unknown): value is Layer.Layer<unknown, unknown> => Layer.isLayer(value)
