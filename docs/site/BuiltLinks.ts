/** The links of the built site: every page and every anchor that a page links to must exist. */
import { existsSync, globSync, readFileSync, statSync } from "node:fs"
import { join, posix } from "node:path"

/** One line for each dead link. `base` is the path that the site is served below. */
export const deadLinks = (folder: string, base = "/"): ReadonlyArray<string> => {
  const pages = globSync("**/*.html", { cwd: folder }).map((path) => path.replaceAll("\\", "/"))
  const texts = new Map(pages.map((page) => [page, readFileSync(join(folder, page), "utf8")]))
  const anchors = new Map(
    [...texts].map(([page, text]) => [page, new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id = ""]) => id))]),
  )
  return [...texts].flatMap(([page, text]) => {
    const links = new Set([...text.matchAll(/<a\s[^>]*?href="([^"]*)"/g)].map(([, link = ""]) => link))
    return [...links].flatMap((link) => {
      if (/^[a-z]+:/.test(link)) return []
      const { target, anchor } = resolve(link, page, base)
      if (target === undefined) return [`${page}: ${link} is outside the site`]
      const file = existing(folder, target)
      if (file === undefined) return [`${page}: ${link} does not exist`]
      return anchor === "" || anchors.get(file)?.has(anchor) === true ? [] : [`${page}: ${link} has no such anchor`]
    })
  })
}

const resolve = (link: string, page: string, base: string) => {
  const [path = "", fragment = ""] = link.replaceAll("&amp;", "&").split("#")
  const anchor = decodeURIComponent(fragment)
  if (path === "") return { target: page, anchor }
  if (path.startsWith("/") && !path.startsWith(base)) return { target: undefined, anchor }
  const target = path.startsWith("/") ? path.slice(base.length) : posix.join(posix.dirname(page), path)
  return { target: decodeURIComponent(target), anchor }
}

const existing = (folder: string, target: string): string | undefined =>
  [target, `${target}.html`, posix.join(target, "index.html")].find((file) => {
    const path = join(folder, file)
    return existsSync(path) && statSync(path).isFile()
  })
