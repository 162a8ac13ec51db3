/**
 * Bundles the command `nereid` with all of its packages, Effect included, from the staged packages. A start from the
 * bundle reads a few files instead of 900: one has all modules that the command imports statically, and each kind of
 * thread has another one. BundleChoice.ts of the command decides which starts use it.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative, sep } from "node:path"
import { type Plugin, rolldown } from "rolldown"
import * as BuiltInModules from "./BuiltInModules.ts"

/** Packages that stay outside: one with native code, one with files, and one that `serve` does not import. */
const external = ["onnxruntime-node", "create-nereid", "undici"]

/** Replaces the code of models in TypeScript, which BundleChoice.ts has excluded. */
const withoutScripts = `
import * as Effect from "effect/Effect"
import { failure } from "../directory/LoadFailure.js"
export const make = () => Effect.fail(failure("its code was added while the server started; start it again"))
`

/**
 * The code of effect/cli/CliOutput, in which the first use makes the segmenter. It takes 9 ms and 2 MB, and finds the
 * widths of texts that no start prints.
 */
const withoutSegmenter = (code: string): string => {
  const initializer = /(?<=const graphemeSegmenter = )(?:\/\*#__PURE__\*\/)?new Intl\.Segmenter\([^)]*\)/u
  if (!initializer.test(code)) throw new Error("effect/cli has changed: it makes no segmenter")
  return code.replace(initializer, "{ segment: (text) => ($&).segment(text) }")
}

/** The entries of threads that the command starts, each with the name of its file. */
const threads = [
  { name: "onnxWorker", specifier: "@nereid/onnx/internal/worker" },
  { name: "fileWorker", specifier: "@nereid/onnx/internal/file/fileWorker" },
]

/** @param dist the folder of the staged packages */
export const make = async (dist: string): Promise<void> => {
  const folder = join(dist, "cli/dist/bundle")
  const modules = await write(dist, folder, "nereid", join(dist, "cli/dist/nereid.js"))
  // Apart, so that no thread loads what only the command needs.
  for (const { name, specifier } of threads) modules.push(...(await write(dist, folder, name, staged(dist, specifier))))
  const files = modules.filter((id) => !id.startsWith(builtIn))
  writeFileSync(join(folder, "LICENSES"), licences(files))
}

/**
 * Writes `name`.js, a file with all that it imports statically, and files for what it imports later. Returns the
 * modules in them.
 */
const write = async (dist: string, folder: string, name: string, entry: string): Promise<Array<string>> => {
  await using build = await rolldown({
    input: { [name]: entry },
    platform: "node",
    transform: { target: "node22" },
    external,
    // Modules in another file than their importers need it.
    preserveEntrySignatures: false,
    plugins: [stagedPackages(dist)],
  })
  let imports: ReadonlySet<string> | undefined
  const { output } = await build.generate({
    format: "esm",
    entryFileNames: "[name].js",
    comments: false,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        {
          debugName: "imports",
          name: (id, chunks) => {
            imports ??= staticallyImported(entry, (each) => chunks.getModuleInfo(each)?.importedIds ?? [])
            // An entry may await a module that imports some of these.
            return imports.has(id) && id !== entry ? `${name}-imports` : null
          },
        },
      ],
    },
  })
  const chunks = output.filter((file) => file.type === "chunk")
  mkdirSync(folder, { recursive: true })
  // V8 holds a source with any other character as two bytes for each.
  const ascii = (code: string) => code.replaceAll(/[^\0-\x7F]/g, escaped)
  for (const { fileName, code } of chunks) writeFileSync(join(folder, fileName), ascii(code))
  return chunks.flatMap(({ moduleIds }) => moduleIds)
}

const stagedPackages = (dist: string): Plugin => ({
  name: "staged",
  resolveId: (id, importer) => {
    // One for each importer, so that a start reads no names for modules that are imported later.
    if (id.startsWith("node:")) return { id: `${builtIn}${id}?${importer}`, moduleSideEffects: false }
    return id.startsWith("@nereid/") ? { id: staged(dist, id), moduleSideEffects: false } : undefined
  },
  load: (id) => {
    if (id.startsWith(builtIn)) return BuiltInModules.source(id.slice(builtIn.length, id.indexOf("?")))
    if (id.endsWith("/ScriptVersion.js")) return withoutScripts
    if (id.endsWith("/effect/dist/cli/CliOutput.js")) return withoutSegmenter(readFileSync(id, "utf8"))
    if (!id.startsWith(dist) || !id.endsWith(".js")) return undefined
    const code = readFileSync(id, "utf8").replaceAll("import.meta.url", urlOf(dist, id))
    return threads.reduce((text, { name, specifier }) => {
      return text.replaceAll(resolved(specifier), `new URL("./${name}.js", import.meta.url).href`)
    }, code)
  },
})

/** Has the same meaning in names, strings and patterns, except in those of String.raw. */
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`

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
