/**
 * Bundles the command `nereid` with all of its packages, Effect included, from the staged packages. A start from the
 * bundle reads a few files instead of 900: one has all modules that the command imports statically. BundleChoice.ts of
 * the command decides which starts use it.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"
import { rolldown } from "rolldown"
import * as BuiltInModules from "./BuiltInModules.ts"

/** Packages that stay outside: one with native code, one with files, and one that `serve` does not import. */
const external = ["onnxruntime-node", "create-nereid", "undici"]

/** Replaces the code of models in TypeScript, which BundleChoice.ts has excluded. */
const withoutScripts = `
import * as Effect from "effect/Effect"
import { failure } from "../directory/LoadFailure.js"
export const make = () => Effect.fail(failure("its code was added while the server started; start it again"))
`

/** @param dist the folder of the staged packages */
export const make = async (dist: string): Promise<void> => {
  const entry = join(dist, "cli/dist/nereid.js")
  const folder = join(dist, "cli/dist/bundle")
  await using build = await rolldown({
    input: { nereid: entry },
    platform: "node",
    transform: { target: "node22" },
    external,
    // Modules in another file than their importers need it.
    preserveEntrySignatures: false,
    plugins: [
      {
        name: "staged",
        resolveId: (id, importer) => {
          // One for each importer, so that a start reads no names for modules that are imported later.
          if (id.startsWith("node:")) return { id: `${builtIn}${id}?${importer}`, moduleSideEffects: false }
          if (id.startsWith("@nereid/")) return { id: staged(dist, id), moduleSideEffects: false }
          return importer?.startsWith(dist) && id.startsWith(".")
            ? { id: join(dirname(importer), id), moduleSideEffects: false }
            : undefined
        },
        load: (id) => {
          if (id.startsWith(builtIn)) return BuiltInModules.source(id.slice(builtIn.length, id.indexOf("?")))
          if (id.endsWith("/ScriptVersion.js")) return withoutScripts
          if (!id.startsWith(dist) || !id.endsWith(".js")) return undefined
          return readFileSync(id, "utf8").replaceAll("import.meta.url", urlOf(dist, id))
        },
      },
    ],
  })
  let start: ReadonlySet<string> | undefined
  const { output } = await build.write({
    dir: folder,
    format: "esm",
    entryFileNames: "[name].js",
    comments: false,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        {
          debugName: "start",
          name: (id, chunks) => {
            start ??= staticallyImported(entry, (each) => chunks.getModuleInfo(each)?.importedIds ?? [])
            return start.has(id) ? "start" : null
          },
        },
      ],
    },
  })
  const modules = output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []))
  const files = modules.filter((id) => !id.startsWith(builtIn))
  writeFileSync(join(folder, "LICENSES"), licences(files))
}

/** Marks modules of Node. Rolldown looks for no file whose name begins with this character. */
const builtIn = "\0"

const staticallyImported = (entry: string, importsOf: (id: string) => ReadonlyArray<string>): ReadonlySet<string> => {
  const found = new Set<string>([entry])
  // A set passes over what is added meanwhile.
  for (const id of found) for (const imported of importsOf(id)) found.add(imported)
  return found
}

/** The file of an import from a sibling package, by its staged exports. */
const staged = (dist: string, specifier: string): string => {
  const [, name = "", path = ""] = /^@nereid\/([^/]+)(.*)$/.exec(specifier) ?? []
  const [, internal] = /^\/internal\/(.*)$/.exec(path) ?? []
  if (internal !== undefined) return join(dist, name, "dist", `${internal}.js`)
  const { exports } = JSON.parse(readFileSync(join(dist, name, "package.json"), "utf8"))
  return join(dist, name, exports[`.${path}`].default)
}

/** An expression for the address that a bundled module has in its own package, whose files it reads. */
const urlOf = (dist: string, path: string): string => {
  const [name = "", , ...file] = relative(dist, path).split(sep)
  if (name === "cli") return "import.meta.url"
  // Of the packages whose modules read files, the dashboard is the only one that the command does not depend on.
  const index = name === "dashboard" ? dependencyOf("@nereid/server", "@nereid/dashboard") : resolved(`@nereid/${name}`)
  return `new URL("${file.join("/")}", ${index}).href`
}

const resolved = (specifier: string): string => `import.meta.resolve("${specifier}")`

const dependencyOf = (specifier: string, dependency: string): string => {
  const path = `process.getBuiltinModule("module").createRequire(${resolved(specifier)}).resolve("${dependency}")`
  return `process.getBuiltinModule("url").pathToFileURL(${path})`
}

/** The licences of the bundled packages, as they ask for. */
const licences = (files: ReadonlyArray<string>): string => {
  const folders = new Set(
    files.flatMap((file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0] ?? []),
  )
  return [...folders]
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
      const [file] = globSync(join(folder, "LICENSE*"))
      return `${name} ${version}: ${license}\n${file === undefined ? "" : `\n${readFileSync(file, "utf8")}`}`
    })
    .join("\n\n")
}
