import { describe, expect, it } from "vitest"
import { siteLink, sourceAnchor } from "./SiteLink.ts"
import { sourceSections, stagedPage } from "./StagedPage.ts"

const document = { source: "docs/guides/models.md", page: "guides/models.md" }
const pages = new Map([
  ["README.md", "index.md"],
  ["docs/guides/models.md", "guides/models.md"],
  ["docs/guides/clients.md", "guides/clients.md"],
  ["docs/decisions", "decisions/index.md"],
  ["examples/digits", "examples/digits.md"],
  ["examples/digits/client.ts", sourceAnchor("examples/digits.md", "examples/digits/client.ts")],
])
const targets = { pages, repository: undefined }
const staged = (markdown: string) => stagedPage(markdown, document, targets)

describe("a link", () => {
  it.each([
    ["clients.md", "./clients.md"],
    ["clients.md#streams", "./clients.md#streams"],
    ["models.md#fields", "#fields"],
    ["#fields", "#fields"],
    ["../../README.md", "../index.md"],
    ["../decisions", "../decisions/index.md"],
    ["../../examples/digits/", "../examples/digits.md"],
    ["../../examples/digits/client.ts", "../examples/digits.md#clientts"],
    ["https://effect.website", "https://effect.website"],
    ["mailto:someone@example.com", "mailto:someone@example.com"],
  ])("%s is %s on the site", (link, expected) => {
    expect(siteLink(link, document, targets)).toBe(expected)
  })

  it("to a file without a page leads to the repository, if there is an address", () => {
    const link = "../../test/bundles.test.ts"
    expect(siteLink(link, document, targets)).toBeUndefined()
    expect(siteLink(link, document, { pages, repository: "https://example.com/o/r" })).toBe(
      "https://example.com/o/r/blob/HEAD/test/bundles.test.ts",
    )
  })
})

describe("a page", () => {
  it("names a file that it cannot link to", () => {
    expect(staged("[bundles.test.ts](../../test/bundles.test.ts)")).toBe("`test/bundles.test.ts`")
    expect(staged("[the `bundles`](../../test/bundles.test.ts#L1)")).toBe("the `bundles` (`test/bundles.test.ts`)")
  })

  it("keeps code as it is", () => {
    const code = "`[a](b.md)` and `{{ x }}`\n\n```ts\nconst a = [b](c.md) < {{ d }}\n```\n"
    expect(staged(code)).toBe(code)
  })

  it("links texts that contain code", () => {
    expect(staged("[`stream` of `]`](clients.md#streams), ![a](clients.md)")).toBe(
      "[`stream` of `]`](./clients.md#streams), ![a](./clients.md)",
    )
  })

  it("is no template: braces and tags are text, addresses are links", () => {
    expect(staged("configs/<name>.pbtxt {{.Name}} <https://x.example>")).toBe(
      "configs/&lt;name>.pbtxt &#123;&#123;.Name}} <https://x.example>",
    )
  })
})

it("a source with a fence gets a longer fence", () => {
  expect(sourceSections([{ name: "a.ts", text: "// ```\n" }])).toBe("\n## a.ts\n\n````ts\n// ```\n````\n")
  expect(sourceSections([{ name: "b.proto", text: "message B {}" }])).toBe(
    "\n## b.proto\n\n```proto\nmessage B {}\n```\n",
  )
})
