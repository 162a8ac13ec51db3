/** Formats the figures of all packages as Markdown: a table, then the details of its figures. */
import { relative } from "node:path"
import * as Exports from "./Exports.ts"
import * as Graph from "./Graph.ts"
import * as Project from "./Project.ts"
import type { FunctionLength, Source } from "./Source.ts"

const longFile = 400
const longFunction = 100

type Figures = Readonly<Record<string, number | string>>

export const markdown = (projects: ReadonlyArray<Project.Project>): string => {
  const packages = projects.filter(({ isPackage }) => isPackage)
  const columns = projects.map((project): readonly [string, Figures] => [
    project.name.replace("@nereid/", ""),
    figures([project], packages),
  ])
  const inner = columns.slice(0, packages.length)
  const total = packages.length > 1 ? [["**packages**", figures(packages, packages)] as const] : []
  return [
    table([...inner, ...total, ...columns.slice(packages.length)]),
    ...details(projects),
    functionList(projects),
  ].join("\n\n")
}

const figures = (projects: ReadonlyArray<Project.Project>, packages: ReadonlyArray<Project.Project>): Figures => {
  const sources = projects.flatMap(({ sources }) => [...sources.values()])
  const lengths = sources.map(({ lines }) => lines).toSorted((one, other) => one - other)
  const sum = (count: (project: Project.Project) => number) =>
    projects.reduce((total, project) => total + count(project), 0)
  const above = lengths.filter((lines) => lines > longFile).length
  const cycles = projects.flatMap((project) => Graph.components(Project.fileGraph(project)))
  const subpaths = (isInternal: boolean) => (project: Project.Project) =>
    [...project.exports.keys()].filter((subpath) => Project.isInternal(subpath) === isInternal).length
  return {
    files: sources.length,
    lines: lengths.reduce((total, lines) => total + lines, 0),
    "lines of the median file": lengths[Math.floor(lengths.length / 2)] ?? 0,
    "lines of the largest file": lengths.at(-1) ?? 0,
    [`files above ${longFile} lines, %`]: ((100 * above) / Math.max(1, lengths.length)).toFixed(1),
    "public subpaths": sum(subpaths(false)),
    "… named in docs, examples or a README": sum(Exports.documentedCount),
    "internal subpaths": sum(subpaths(true)),
    "names exported by public subpaths": sum((project) => Exports.publicNames(project, packages)),
    "… by all modules that any subpath reaches": sum(Exports.reachedNames),
    folders: sum((project) => Project.folderGraph(project).size),
    "edges between folders": sum((project) => Graph.edges(Project.folderGraph(project)).length),
    "… pairs that import each other": sum((project) => Graph.mutual(Project.folderGraph(project)).length),
    "… that run back up in the best order": sum((project) => Graph.backEdges(Project.folderGraph(project)).length),
    "import cycles among files": cycles.length,
    "… files in them": cycles.reduce((total, { length }) => total + length, 0),
    [`functions above ${longFunction} lines`]: longFunctions(sources).length,
    "`error instanceof Error ?`": sources.reduce((total, { errorChecks }) => total + errorChecks, 0),
  }
}

const longFunctions = (sources: ReadonlyArray<Source>): ReadonlyArray<FunctionLength> =>
  sources.flatMap(({ functions }) => functions).filter(({ lines }) => lines > longFunction)

/** One column for each project, one row for each figure. */
const table = (columns: ReadonlyArray<readonly [string, Figures]>): string => {
  const row = (cells: ReadonlyArray<number | string>) => `| ${cells.join(" | ")} |`
  return [
    row(["", ...columns.map(([name]) => name)]),
    row(["---", ...columns.map(() => "--:")]),
    ...Object.keys(columns[0]?.[1] ?? {}).map((figure) =>
      row([figure, ...columns.map(([, figures]) => figures[figure] ?? "")]),
    ),
  ].join("\n")
}

/** The edges and files behind the figures about graphs; packages without any are left out. */
const details = (projects: ReadonlyArray<Project.Project>): ReadonlyArray<string> =>
  projects.flatMap((project) => {
    const folders = Project.folderGraph(project)
    const arrows = (edges: ReadonlyArray<Graph.Edge>, arrow: string) =>
      edges.map(([from, to]) => `${from} ${arrow} ${to}`).join(", ")
    const lists = [
      ["import each other", arrows(Graph.mutual(folders), "↔")],
      ["run back up", arrows(Graph.backEdges(folders), "→")],
      [
        "import cycles",
        Graph.components(Project.fileGraph(project))
          .map((files) => `${files.length} files (${files.map((file) => relative(project.folder, file)).join(", ")})`)
          .join(", "),
      ],
    ].filter(([, list]) => list !== "")
    return lists.length === 0
      ? []
      : [lists.map(([heading, list]) => `- ${project.name}, ${heading}: ${list}`).join("\n")]
  })

/** Lists all functions above the limit, and at least ten. */
const functionList = (projects: ReadonlyArray<Project.Project>): string => {
  const all = projects.flatMap(({ name, folder, sources }) =>
    [...sources.values()].flatMap(({ functions }) =>
      functions.map((each) => ({ ...each, place: `${name}: ${relative(folder, each.file)}:${each.line}` })),
    ),
  )
  const longest = all.toSorted((one, other) => other.lines - one.lines)
  const shown = longest.slice(0, Math.max(10, longest.filter(({ lines }) => lines > longFunction).length))
  return ["The longest functions:", ...shown.map(({ name, lines, place }) => `- ${lines} lines: ${name}, ${place}`)]
    .join("\n")
    .replace("\n", "\n\n")
}
