import { describe, expect, it } from "vitest"
import { documentAnchors } from "./HeadingSlug.ts"
import * as Navigation from "./Navigation.ts"
import * as Reference from "./Reference.ts"
import { resolved } from "./SiteLink.ts"
import * as SitePages from "./SitePages.ts"

const pages = SitePages.all()
const targets = { pages: SitePages.targets(pages), repository: undefined }

describe("the guides' table of the README", () => {
  const groups = Navigation.guideGroups(SitePages.read("README.md"), targets)

  it("has the tasks", () => {
    expect(groups.map(({ text }) => text)).toEqual(["Learn", "Serve", "Operate", "Migrate", "Contribute"])
  })

  it("has every guide and every document of docs once", () => {
    const listed = groups.flatMap(({ items }) => items.map(({ link }) => link))
    const documents = pages.filter(({ source }) => /^docs\/(?:guides\/)?[\w-]+\.md$/.test(source))
    expect(listed.toSorted()).toEqual([...new Set(listed)].toSorted())
    expect(documents.map(({ page }) => `/${page.replace(".md", "")}`).filter((link) => !listed.includes(link))).toEqual(
      [],
    )
  })

  it("rejects a link to a file without a page", () => {
    const readme = "## Guides\n\n| task | guides |\n|---|---|\n| Learn | [Tests](test/Guide.ts) |\n"
    expect(() => Navigation.guideGroups(readme, targets)).toThrow("test/Guide.ts, which is not a page")
    expect(() => Navigation.guideGroups("# No table", targets)).toThrow("no table of guides")
  })
})

it("a package's group has its overview, and its modules", () => {
  const modules = [
    { package: "core", name: "", page: "reference/@nereid/core/index.md" },
    { package: "core", name: "Tensor", page: "reference/@nereid/core/Tensor.md" },
  ]
  const { reference } = Navigation.navigation(pages, targets, modules)
  expect(reference.find(({ text }) => text === "@nereid/core")?.items).toEqual([
    { text: "Overview", link: "/packages/core" },
    { text: "Exports", link: "/reference/@nereid/core/" },
    { text: "Tensor", link: "/reference/@nereid/core/Tensor" },
  ])
})

it("the reference has the public modules, and no internal or generated one", () => {
  const names = Reference.publicModules().map(({ name }) => name)
  expect(names).toContain("@nereid/core/Tensor")
  expect(names).toContain("@nereid/client/browser")
  expect(names.filter((name) => /internal|protocol/.test(name))).toEqual([])
})

it("links between documents name headings that exist", () => {
  const anchors = new Map(pages.map(({ source }) => [source, documentAnchors(SitePages.read(source))]))
  const dead = pages.flatMap(({ source }) => {
    const prose = SitePages.read(source).replaceAll(/^( *)```[^]*?^\1```/gm, "")
    return [...prose.matchAll(/\]\(([^\s):]*)#([^\s)]+)\)/g)].flatMap(([, path = "", anchor = ""]) => {
      const target = path === "" ? source : resolved(source, path)
      const isDead = anchors.get(target)?.includes(anchor) === false
      return isDead ? [`${source}: ${path}#${anchor}`] : []
    })
  })
  expect(dead).toEqual([])
})
