/**
 * The pages of the site: which document of the repository becomes which page. A document is a Markdown file, an example
 * with its sources, or the protocol's .proto files. The API reference is not here; Reference.ts generates its pages.
 */
import { globSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { documentTitle } from "./HeadingSlug.ts"
import { sourceAnchor } from "./SiteLink.ts"

export const root = join(import.meta.dirname, "../..")

export interface SitePage {
  /** Path of the document, from the root of the repository. */
  readonly source: string
  /** Path of the page, from the root of the site, with `.md`. */
  readonly page: string
  readonly title: string
}

/** Folders whose documents are pages, and the folder of these pages on the site. */
const folders: ReadonlyArray<readonly [documents: string, folder: string]> = [
  ["docs/*.md", ""],
  ["docs/guides/*.md", "guides"],
  ["docs/decisions/*.md", "decisions"],
]

/** Folders with one page each, which is written from their README.md. */
const projects: ReadonlyArray<string> = ["examples", "packages"]

const community: ReadonlyArray<readonly [source: string, page: string]> = [
  ["README.md", "index.md"],
  ["CONTRIBUTING.md", "contributing.md"],
  ["SECURITY.md", "security.md"],
  ["CODE_OF_CONDUCT.md", "code-of-conduct.md"],
]

const files = (pattern: string): ReadonlyArray<string> =>
  globSync(pattern, { cwd: root })
    .map((path) => path.replaceAll("\\", "/"))
    .toSorted()

export const read = (source: string): string => readFileSync(join(root, source), "utf8")

export const all = (): ReadonlyArray<SitePage> =>
  [
    ...community,
    ...folders.flatMap(([pattern, folder]) =>
      files(pattern).map((source) => [source, posix.join(folder, posix.basename(source))] as const),
    ),
    ...projects.flatMap((folder) =>
      files(`${folder}/*/README.md`).map((source) => [source, `${posix.dirname(source)}.md`] as const),
    ),
  ].map(([source, page]) => ({ source, page, title: title(source) }))

/** Source files that a page shows below its document: those of an example, and the .proto files of the protocol. */
export const sources = ({ source }: SitePage): ReadonlyArray<string> => {
  if (source === "packages/protocol/README.md") return files("proto/**/*.proto")
  if (!source.startsWith("examples/")) return []
  return files(`${posix.dirname(source)}/*.ts`).filter((path) => !path.endsWith(".test.ts"))
}

/** The page of every document, of every folder that has a page, and of every source file that a page shows. */
export const targets = (pages: ReadonlyArray<SitePage>): ReadonlyMap<string, string> =>
  new Map([
    [decisions.source, decisions.page],
    ...pages.flatMap((page): ReadonlyArray<readonly [string, string]> => [
      [page.source, page.page],
      ...(projects.includes(page.source.split("/")[0] ?? "") ? [[posix.dirname(page.source), page.page] as const] : []),
      ...sources(page).map((source) => [source, sourceAnchor(page.page, source)] as const),
    ]),
  ])

/** The list of decisions. In the repository, it is a folder. */
export const decisions = { source: "docs/decisions", page: "decisions/index.md" } as const

export const decisionsPage = (pages: ReadonlyArray<SitePage>): string => {
  const rows = pages
    .filter(({ source }) => source.startsWith(`${decisions.source}/`))
    .map(({ page, title }) => `| ${posix.basename(page).slice(0, 10)} | [${title}](./${posix.basename(page)}) |`)
  return [
    "# Decisions",
    "",
    "Choices that are hard to undo.",
    "",
    "| date | decision |",
    "|---|---|",
    ...rows,
    "",
  ].join("\n")
}

const title = (source: string): string => {
  const text = documentTitle(read(source))
  if (text === undefined) throw new Error(`${source} has no heading`)
  return text
}
