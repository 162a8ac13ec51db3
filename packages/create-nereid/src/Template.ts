/** The files of a new workspace, from those in `template`. Nothing is written here; NewFiles.ts writes. */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

export interface TemplateFile {
  /** Below the workspace, with `/` between its parts. */
  readonly path: string
  readonly text: string
}

export interface Values {
  readonly name: string
  /** Version of the packages of Nereid. */
  readonly version: string
  /** Replacements of npm packages by name, such as `file:` addresses. Default: none. */
  readonly overrides?: Readonly<Record<string, string>> | undefined
}

const folder = fileURLToPath(new URL("../template/", import.meta.url))

/** Stands for the name in the template, which is a workspace that works under this name. */
const placeholder = "nereid-workspace"

export const files = (values: Values): ReadonlyArray<TemplateFile> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/[/\\]node_modules[/\\]/.test(relative(folder, file)))
    .map((file) => fill(pathOf(file), readFileSync(file, "utf8"), values))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))

/**
 * The path in the workspace. npm publishes no .gitignore, and other tools read each package.json of a package, so the
 * published template has these names with an underscore.
 */
const pathOf = (file: string): string =>
  relative(folder, file)
    .replaceAll("\\", "/")
    .replace(/(^|\/)_gitignore$/, "$1.gitignore")
    .replace(/(^|\/)_package\.json$/, "$1package.json")

const fill = (path: string, template: string, { name, version, overrides }: Values): TemplateFile => {
  const text = template.replaceAll(placeholder, name)
  if (!path.endsWith("package.json")) return { path, text }
  const withVersion = text.replaceAll(/"(@nereid\/\w+)": "\*"/g, `"$1": "^${version}"`)
  return { path, text: path === "package.json" ? withOverrides(withVersion, overrides) : withVersion }
}

const withOverrides = (manifest: string, overrides: Values["overrides"]): string =>
  overrides === undefined ? manifest : `${JSON.stringify({ ...JSON.parse(manifest), overrides }, null, 2)}\n`
