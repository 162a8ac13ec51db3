/** Messages for a module that does not export what a server needs: what it exports, and what to add. */
import * as ExportedModels from "@nereid/core/internal/lifecycle/ExportedModels"

type Exports = Readonly<Record<string, unknown>>

/** Names that a message lists. */
const maxNames = 8

/** Describes a module without a model. */
export const noModel = (path: string, module: Exports): string => {
  const { default: value } = module
  if (isObject(value)) {
    const inside = Object.values(value).filter(ExportedModels.isModel)
    if (inside.length > 0) {
      const names = inside.map(({ definition }) => `'${definition.name}'`).join(", ")
      return `${path} exports no model: ${names} is a member of its default export, and must be a named export`
    }
    if ("execute" in value) {
      return `${path} exports no model, but a script of a model repository: serve its repository, with --model-repository`
    }
  }
  const layers = Object.entries(module).flatMap(([name, value]) => (ExportedModels.layerOf(value) ? [name] : []))
  const remedy = "export the class that extends Model.Service"
  if (layers.length > 0) {
    const what = layers.length === 1 ? `the layer ${listed(layers)}` : `the layers ${listed(layers)}`
    return `${path} exports ${what}, but no model: ${remedy} too`
  }
  const names = Object.keys(module)
  if (names.length === 0) {
    return `${path} exports nothing: ${remedy}, and its layer; a program that starts its own server is run with node`
  }
  return `${path} exports no model, only ${listed(names)}: ${remedy}, and its layer`
}

/** Describes a module with models and without a layer. */
export const noLayer = (path: string, models: ReadonlyArray<ExportedModels.ExportedModel>): string => {
  const names = models.map(({ definition }) => definition.name)
  const remedy = `export the result of Model.each, Model.batch or Onnx.layer for ${names.join(", ")}`
  return `${path} exports no layer: ${remedy}`
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && ExportedModels.layerOf(value) === undefined

const listed = (names: ReadonlyArray<string>): string =>
  names.length <= maxNames
    ? names.join(", ")
    : `${names.slice(0, maxNames).join(", ")} and ${names.length - maxNames} more`
