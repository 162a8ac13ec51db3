/**
 * The imports of this repository's source files, read from their text: which file loads which, types included or not.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import * as Graph from "../.ci/structure/Graph.ts"

const root = join(import.meta.dirname, "..")

const packagesFolder = join(root, "packages")

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports?: { readonly [path: string]: string }
  readonly sideEffects: false | ReadonlyArray<string>
  readonly dependencies?: { readonly [name: string]: string }
  readonly peerDependencies?: { readonly [name: string]: string }
}

export interface Package {
  /** The name of its folder: `core` for `@nereid/core`, `create-nereid` for `create-nereid`. */
  readonly name: string
  readonly manifest: Manifest
  /** Paths of its source files, without tests and fixtures. */
  readonly files: ReadonlyArray<string>
}

const isSource = (name: string): boolean => name.endsWith(".ts") && !/\.(test|fixture)\.ts$/.test(name)

export const sources = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && isSource(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))

export const packages: ReadonlyArray<Package> = readdirSync(packagesFolder)
  .filter((name) => existsSync(join(packagesFolder, name, "package.json")))
  .map((name) => ({
    name,
    manifest: JSON.parse(readFileSync(join(packagesFolder, name, "package.json"), "utf8")),
    files: sources(join(packagesFolder, name, "src")),
  }))

const statement = /(?:^|\n)\s*(?:import|export)\b(?:[^"'`;]*?\bfrom)?\s*["']([^"']+)["']/g

const dynamic = /\bimport\(\s*["']([^"']+)["']\s*\)/g

const typeOnly = /(?:^|\n)\s*(?:import|export) type (?:\{[^}]*\}|\* as \w+|\w+)\s*from\s*["'][^"']+["']/g

/**
 * The specifiers that a file imports or exports from; `isLoaded` leaves out those of types, which are gone at run time.
 */
export const specifiers = (file: string, isLoaded = false): ReadonlyArray<string> => {
  const text = readFileSync(file, "utf8").replaceAll(/\/\*[^]*?\*\//g, "")
  const code = isLoaded ? text.replaceAll(typeOnly, "") : text
  return [...code.matchAll(statement), ...code.matchAll(dynamic)].flatMap(([, specifier]) => specifier ?? [])
}

/** The package of this repository that a specifier names; undefined for a file or a package from elsewhere. */
export const packageOf = (specifier: string): Package | undefined =>
  packages.find(({ manifest: { name } }) => specifier === name || specifier.startsWith(`${name}/`))

/** The file of this repository that a specifier means; undefined for a module from elsewhere. */
export const resolve = (file: string, specifier: string): string | undefined => {
  if (specifier.startsWith(".")) return join(dirname(file), specifier)
  const target = packageOf(specifier)
  const path = target?.manifest.exports?.[`.${specifier.slice(target.manifest.name.length)}`]
  return target === undefined || path === undefined ? undefined : join(packagesFolder, target.name, path)
}

/**
 * Every module that a file loads at run time, including itself: paths of files, and specifiers of external packages.
 */
export const loaded = (file: string, seen = new Set<string>()): ReadonlySet<string> => {
  if (seen.has(file)) return seen
  seen.add(file)
  for (const specifier of specifiers(file, true)) {
    const target = resolve(file, specifier)
    if (target === undefined) seen.add(specifier)
    else loaded(target, seen)
  }
  return seen
}

/** The folder of a file inside its package; `.` for the package's own. */
export const folderOf = ({ name }: Pick<Package, "name">, file: string): string =>
  relative(join(packagesFolder, name, "src"), dirname(file)) || "."

/** Groups of files that import each other in a circle, type imports included: each a list of names. */
export const cycles = (files: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const known = new Set(files)
  const targets = (file: string) =>
    specifiers(file).flatMap((specifier) => {
      const target = resolve(file, specifier)
      return target !== undefined && known.has(target) ? [target] : []
    })
  const graph = new Map(files.map((file) => [file, new Set(targets(file))]))
  return Graph.components(graph).map((component) => component.map((file) => basename(file)))
}

/** A path as messages show it. */
export const shown = (file: string): string => relative(root, file)
