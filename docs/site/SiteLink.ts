/**
 * The target of a document's link on the site. Documents link to files of the repository, because they are also read on
 * a Git host. A file without a page is a link to the repository if its address is known, and plain text otherwise.
 */
import { posix } from "node:path"
import { headingSlug } from "./HeadingSlug.ts"

export interface Targets {
  /** Pages of the site, by path in the repository: a document, a folder, or a source file that a page shows. */
  readonly pages: ReadonlyMap<string, string>
  /** `repository` of the root package.json. */
  readonly repository: string | undefined
}

/** @returns the link on the site; undefined for a file that neither the site nor a known repository shows */
export const siteLink = (
  link: string,
  document: { readonly source: string; readonly page: string },
  { pages, repository }: Targets,
): string | undefined => {
  if (/^(?:[a-z]+:|#)/.test(link)) return link
  const [path = "", fragment] = link.split("#")
  const target = resolved(document.source, path)
  const page = pages.get(target)
  if (page !== undefined) return relative(document.page, page, fragment)
  return repository === undefined ? undefined : `${repository}/blob/HEAD/${target}`
}

/** The path of a file that a document links to, from the root of the repository. */
export const resolved = (source: string, link: string): string =>
  posix.join(posix.dirname(source), link).replace(/\/$/, "")

/** The page and anchor of a source file that the page of its folder shows under a heading with its name. */
export const sourceAnchor = (page: string, file: string): string => `${page}#${headingSlug(posix.basename(file))}`

const relative = (from: string, to: string, fragment: string | undefined): string => {
  const [path = "", anchor = fragment] = to.split("#")
  const way = from === path ? "" : posix.relative(posix.dirname(from), path)
  return `${way === "" || way.startsWith(".") ? way : `./${way}`}${anchor === undefined ? "" : `#${anchor}`}`
}
