/**
 * Imports a user's module: exported models, exported layers, and its `routes`. ExportedModels.ts of core combines
 * models and layers.
 */
import { pathToFileURL } from "node:url"
import * as ExportedModels from "@nereid/core/internal/lifecycle/ExportedModels"
import * as ImportProblem from "@nereid/repository/internal/script/ImportProblem"
import type { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import * as MissingExport from "./MissingExport.ts"

export interface ModelModule {
  readonly models: ReadonlyArray<ExportedModels.ExportedModel>
  readonly layers: ExportedModels.ExportedLayers
  /** Routes that the module exports as `routes`. */
  readonly routes: Server.ModelRoutes
}

/** Empty module, for servers whose models come from elsewhere. Its layer provides nothing. */
export const none: ModelModule = { models: [], layers: [Layer.empty as Layer.Layer<unknown>], routes: {} }

/** Imports a module and returns its exports, by name. */
export const exported = (path: string): Effect.Effect<Readonly<Record<string, unknown>>, ExportedModels.ModuleError> =>
  Effect.tryPromise({
    try: (): Promise<Record<string, unknown>> => import(pathToFileURL(path).href),
    catch: (error) =>
      new ExportedModels.ModuleError({
        message: `${path} cannot be loaded: ${reason(error, pathToFileURL(path).href)}`,
      }),
  })

export const load = (path: string) => Effect.flatMap(exported(path), (module) => read(path, module))

/** Reads the models, layers and routes of a module's exports. */
export const read = Effect.fn("ModelModule.read")(function* (path: string, module: Readonly<Record<string, unknown>>) {
  const exports = [...new Set(Object.values(module))]
  const models = exports.filter(ExportedModels.isModel)
  const [first, ...rest] = new Set(exports.flatMap((value) => ExportedModels.layerOf(value) ?? []))
  if (models.length === 0) {
    return yield* new ExportedModels.ModuleError({ message: MissingExport.noModel(path, module) })
  }
  const names = new Set(models.map((model) => model.definition.name))
  if (names.size < models.length) {
    return yield* new ExportedModels.ModuleError({
      message: `${path} exports two models of the same name: ${[...names].join(", ")}`,
    })
  }
  if (first === undefined) {
    return yield* new ExportedModels.ModuleError({ message: MissingExport.noLayer(path, models) })
  }
  const { routes = {} } = module
  if (!isRoutes(routes)) {
    const shape = '{ "POST /path": Model, … }, with exported models'
    return yield* new ExportedModels.ModuleError({ message: `${path} exports routes that are not ${shape}` })
  }
  return { models, layers: [first, ...rest], routes } satisfies ModelModule
})

export const build = ({ models, layers }: ModelModule) => ExportedModels.build(models, layers)

const reason = (error: unknown, url: string): string =>
  error instanceof Error && "url" in error && error.url === url ? "the file does not exist" : ImportProblem.text(error)

/** Checks the type only; the server validates the paths. */
const isRoutes = (value: unknown): value is Server.ModelRoutes =>
  typeof value === "object" && value !== null && Object.values(value).every(ExportedModels.isModel)
