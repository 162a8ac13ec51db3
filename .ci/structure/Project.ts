/** The packages of a checkout with their source files; tests, fixtures and generated code are left out. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import type { Graph } from "./Graph.ts"
import * as Source from "./Source.ts"

export interface Project {
  readonly name: string
  readonly folder: string
  /** Sources by path. */
  readonly sources: ReadonlyMap<string, Source.Source>
  /** Paths of the modules that `package.json#exports` names, by subpath. */
  readonly exports: ReadonlyMap<string, string>
  /** Specifiers of this package in README files, docs and examples; empty if the folder has none of them. */
  readonly documented: ReadonlySet<string>
  /** False for tests, examples and scripts, which belong to no package. */
  readonly isPackage: boolean
}

interface Manifest {
  readonly name: string
  readonly exports: { readonly [path: string]: string | { readonly import?: string; readonly default?: string } }
}

/**
 * Returns the packages in `packages/` and the other code of the checkout, or the folder itself if it has no packages.
 */
export const all = (root: string): ReadonlyArray<Project> => {
  const packages = join(root, "packages")
  if (!existsSync(packages)) return [project(root, nearestManifest(root), noSpecifiers, true)]
  const documented = documentedSpecifiers(root)
  return [
    ...readdirSync(packages)
      .filter((name) => existsSync(join(packages, name, "src")))
      .map((name) => project(join(packages, name, "src"), join(packages, name), documented, true)),
    ...["examples", "test", ".ci"].map((name) => project(join(root, name), undefined, noSpecifiers, false)),
  ]
}

/** Graph of the imports among the files of a package. */
export const fileGraph = ({ sources }: Project): Graph =>
  new Map(
    [...sources.values()].map(({ file, imports }) => [
      file,
      new Set(imports.map((specifier) => join(dirname(file), specifier)).filter((target) => sources.has(target))),
    ]),
  )

/** Graph of the imports between the folders of a package; a nested folder is a separate node. */
export const folderGraph = (project: Project): Graph => {
  const folderOf = (file: string) => relative(project.folder, dirname(file)) || "."
  const graph = new Map<string, Set<string>>()
  for (const [file, targets] of fileGraph(project)) {
    const from = folderOf(file)
    const edges = graph.get(from) ?? new Set<string>()
    for (const target of targets) if (folderOf(target) !== from) edges.add(folderOf(target))
    graph.set(from, edges)
  }
  return graph
}

export const isInternal = (subpath: string): boolean => subpath.startsWith("./internal/")

const noSpecifiers: ReadonlySet<string> = new Set()

const project = (
  folder: string,
  manifestFolder: string | undefined,
  documented: ReadonlySet<string>,
  isPackage: boolean,
): Project => {
  const files = existsSync(folder) ? sourceFiles(folder) : []
  const sources = new Map(files.map((file) => [file, Source.read(file)]))
  if (manifestFolder === undefined) {
    return { name: basename(folder), folder, sources, exports: new Map(), documented, isPackage }
  }
  const { name, exports }: Manifest = JSON.parse(readFileSync(join(manifestFolder, "package.json"), "utf8"))
  const targets = Object.entries(exports ?? {}).flatMap(([subpath, target]) => {
    const path = typeof target === "string" ? target : (target.import ?? target.default ?? "")
    return [[subpath, join(manifestFolder, path)] as const]
  })
  const own = [...documented].filter((specifier) => specifier === name || specifier.startsWith(`${name}/`))
  return { name, folder, sources, exports: new Map(targets), documented: new Set(own), isPackage }
}

const sourceFiles = (folder: string): ReadonlyArray<string> =>
  filesBelow(folder)
    .filter((file) => /\.(ts|js|mjs)$/.test(file) && !/\.(test|fixture|config|d)\.m?[tj]s$/.test(file))
    .filter((file) => !/(^|\/)(gen|fixtures)\//.test(relative(folder, file)))

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/(^|\/)(node_modules|dist)\//.test(relative(folder, file)))
    .toSorted()

/** The folder with the manifest of a package that contains a folder; undefined outside of packages. */
const nearestManifest = (folder: string): string | undefined => {
  const file = join(folder, "package.json")
  if (existsSync(file) && "exports" in JSON.parse(readFileSync(file, "utf8"))) return folder
  return dirname(folder) === folder ? undefined : nearestManifest(dirname(folder))
}

const documentedSpecifiers = (root: string): ReadonlySet<string> => {
  const readmes = filesBelow(join(root, "packages")).filter((file) => basename(file) === "README.md")
  const others = ["docs", "examples"].flatMap((name) => filesBelow(join(root, name)))
  const texts = [join(root, "README.md"), ...readmes, ...others].filter((file) => /\.(md|ts)$/.test(file))
  return new Set(texts.flatMap((file) => readFileSync(file, "utf8").match(/@nereid\/[\w/-]+/g) ?? []))
}
