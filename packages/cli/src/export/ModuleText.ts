/**
 * The `model.ts` of a model in code: it exports the model and its layer from the module that they were exported from.
 */
import { relative, resolve, sep } from "node:path"

export interface ModuleSource {
  /** The user's module. */
  readonly path: string
  /** Export names of the class and the layer. */
  readonly names: ReadonlyArray<string>
}

/** `folder`: where the text is written to. */
export const make = ({ path, names }: ModuleSource, folder: string): string => {
  const relativePath = relative(resolve(folder), resolve(path)).split(sep).join("/")
  const specifier = JSON.stringify(relativePath.startsWith(".") ? relativePath : `./${relativePath}`)
  const exported = names.map((name) => (name === "default" ? "default as Default" : name)).join(", ")
  return `/** Written by \`nereid export\`: the model as its own module has it, which must be where it was. */\nexport { ${exported} } from ${specifier}\n`
}
