/**
 * Builds the documentation site: `npm run docs`, which installs this folder's tools first. The pages are staged in
 * dist/pages, and the site is in dist/site. Options go to VitePress, such as `npm run docs -- --base=/nereid/` for a
 * site below a path. Fails on a dead link, and on a public export without a docstring.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, posix } from "node:path"
import { repositoryAddress } from "../../.ci/StagedPackage.ts"
import { deadLinks } from "./BuiltLinks.ts"
import * as Navigation from "./Navigation.ts"
import * as Reference from "./Reference.ts"
import type * as SiteLink from "./SiteLink.ts"
import * as SitePages from "./SitePages.ts"
import { sourceSections, stagedPage } from "./StagedPage.ts"

const dist = join(import.meta.dirname, "dist")
const staged = join(dist, "pages")
const site = join(dist, "site")
const options = process.argv.slice(2)
const base = options.map((option) => /^--base=(.*)$/.exec(option)?.[1]).find((value) => value !== undefined) ?? "/"

const write = (page: string, text: string): void => {
  const file = join(staged, page)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const build = (): void => {
  rmSync(dist, { recursive: true, force: true })

  const pages = SitePages.all()
  const targets: SiteLink.Targets = {
    pages: SitePages.targets(pages),
    repository: repositoryAddress(JSON.parse(SitePages.read("package.json"))),
  }

  for (const document of pages) {
    const sources = SitePages.sources(document).map((path) => ({
      name: posix.basename(path),
      text: SitePages.read(path),
    }))
    write(document.page, stagedPage(SitePages.read(document.source), document, targets) + sourceSections(sources))
  }
  write(SitePages.decisions.page, SitePages.decisionsPage(pages))
  const modules = Reference.write(staged, join(dist, "api"))
  writeFileSync(join(dist, "navigation.json"), JSON.stringify(Navigation.navigation(pages, targets, modules)))

  execFileSync(join(import.meta.dirname, "node_modules/.bin/vitepress"), ["build", import.meta.dirname, ...options], {
    stdio: "inherit",
  })

  const dead = deadLinks(site, base)
  if (dead.length > 0) throw new Error(`Dead links:\n  ${dead.join("\n  ")}`)
  console.log(`The site is in ${site}`)
}

try {
  build()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
