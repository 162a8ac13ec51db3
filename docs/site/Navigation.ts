/**
 * The site's navigation. Its groups and their order are those of the guides' table in the README; examples and the API
 * reference follow.
 */
import type { ReferencePage } from "./Reference.ts"
import * as SitePages from "./SitePages.ts"
import type * as SiteLink from "./SiteLink.ts"

export interface Item {
  readonly text: string
  /** From the root of the site, without extension. */
  readonly link: string
}

export interface Group {
  readonly text: string
  readonly items: ReadonlyArray<Item>
}

/** @throws Error for a row of the table that links to a document without a page */
export const guideGroups = (readme: string, targets: SiteLink.Targets): ReadonlyArray<Group> => {
  const [, table = ""] = /^## Guides\n[^]*?((?:^\|.*\n)+)/m.exec(readme) ?? []
  const rows = table.trimEnd().split("\n").slice(2)
  if (rows.length === 0) throw new Error("The README has no table of guides")
  return rows.map((row) => {
    const [, text = "", links = ""] = row.split("|").map((cell) => cell.trim())
    return {
      text,
      items: [...links.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, text = "", link = ""]) =>
        item(text, link, targets),
      ),
    }
  })
}

const item = (text: string, link: string, { pages }: SiteLink.Targets): Item => {
  const page = pages.get(link.replace(/#.*/, ""))
  if (page === undefined) throw new Error(`The README's table of guides links to ${link}, which is not a page`)
  return { text: `${text.charAt(0).toUpperCase()}${text.slice(1)}`, link: pageLink(page) }
}

export interface Navigation {
  readonly guides: ReadonlyArray<Group>
  readonly examples: Group
  /** A group for each package: its own page, and those of its modules. */
  readonly reference: ReadonlyArray<Group>
}

export const navigation = (
  pages: ReadonlyArray<SitePages.SitePage>,
  targets: SiteLink.Targets,
  modules: ReadonlyArray<ReferencePage>,
): Navigation => ({
  guides: guideGroups(SitePages.read("README.md"), targets),
  examples: { text: "Examples", items: projects("examples", pages) },
  reference: projects("packages", pages).map(({ text, link }) => ({
    text: packageName(text),
    items: [
      { text: "Overview", link },
      ...modules
        .filter((module) => module.package === text)
        .map(({ name, page }) => ({ text: name === "" ? "Exports" : name, link: pageLink(page) })),
    ],
  })),
})

/** The pages of a folder of projects, each with the name of its project. */
const projects = (folder: string, pages: ReadonlyArray<SitePages.SitePage>): ReadonlyArray<Item> =>
  pages
    .filter(({ source }) => source.startsWith(`${folder}/`))
    .map(({ page, source }) => ({ text: source.split("/")[1] ?? "", link: pageLink(page) }))

const packageName = (folder: string): string => {
  const { name }: { name: string } = JSON.parse(SitePages.read(`packages/${folder}/package.json`))
  return name
}

const pageLink = (page: string): string => `/${page.replace(/(?:index)?\.md$/, "")}`
