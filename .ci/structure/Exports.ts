/** Counts the exports of a package. */
import { dirname, join } from "node:path"
import { fileGraph, isInternal, type Project } from "./Project.ts"

/** Public subpaths that a README, the docs or an example imports or names. */
export const documentedCount = ({ name, exports, documented }: Project): number =>
  [...exports.keys()].filter((subpath) => !isInternal(subpath) && documented.has(join(name, subpath))).length

/** Names that the modules of public subpaths export, summed over the modules. A namespace counts as one name. */
export const publicNames = ({ exports }: Project, packages: ReadonlyArray<Project>): number => {
  let count = 0
  for (const [subpath, file] of exports) if (!isInternal(subpath)) count += names(file, packages).size
  return count
}

/** Names that all modules export to which imports lead from any subpath, inside the package. */
export const reachedNames = (project: Project): number => {
  const graph = fileGraph(project)
  const reached = new Set<string>()
  const visit = (file: string) => {
    if (reached.has(file)) return
    reached.add(file)
    for (const next of graph.get(file) ?? []) visit(next)
  }
  for (const file of project.exports.values()) visit(file)
  let count = 0
  for (const file of reached) count += names(file, [project]).size
  return count
}

/** The names of a module, with those that come by `export * from`. Modules outside the packages count as empty. */
const names = (file: string, packages: ReadonlyArray<Project>): ReadonlySet<string> => {
  const source = packages.find(({ sources }) => sources.has(file))?.sources.get(file)
  const stars = source?.stars.flatMap((specifier) => [...names(target(file, specifier, packages), packages)])
  return new Set([...(source?.names ?? []), ...(stars ?? [])])
}

/** The file of a specifier; the specifier itself where no package has it. */
const target = (file: string, specifier: string, packages: ReadonlyArray<Project>): string => {
  if (specifier.startsWith(".")) return join(dirname(file), specifier)
  for (const { name, exports } of packages) {
    for (const [subpath, path] of exports) if (join(name, subpath) === specifier) return path
  }
  return specifier
}
