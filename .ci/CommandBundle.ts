/**
 * Bundles the command `nereid` with all of its packages, Effect included, from the staged packages. A start from the
 * bundle reads 80 files instead of 900. BundleChoice.ts of the command decides which starts use it.
 */
import { build } from "esbuild"
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"

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
  const command = join(dist, "cli/dist")
  const { metafile } = await build({
    entryPoints: { nereid: join(command, "nereid.js") },
    outdir: join(command, "bundle"),
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node22",
    metafile: true,
    legalComments: "none",
    external,
    plugins: [
      {
        name: "staged",
        setup: ({ onResolve, onLoad }) => {
          onResolve({ filter: /^@nereid\// }, ({ path }) => ({ path: staged(dist, path), sideEffects: false }))
          onLoad({ filter: /ScriptVersion\.js$/ }, ({ path }) => ({
            contents: withoutScripts,
            resolveDir: dirname(path),
          }))
          onLoad({ filter: /\.js$/ }, ({ path }) => {
            const code = readFileSync(path, "utf8")
            return code.includes("import.meta.url") && path.startsWith(dist)
              ? { contents: code.replaceAll("import.meta.url", urlOf(dist, path)) }
              : undefined
          })
        },
      },
    ],
  })
  writeFileSync(join(command, "bundle/LICENSES"), licences(Object.keys(metafile.inputs)))
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
