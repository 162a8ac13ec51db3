import { expect, it } from "vitest"
import { documentAnchors, documentTitle, headingSlug } from "./HeadingSlug.ts"

it.each([
  ["Loading, replacing and unloading models", "loading-replacing-and-unloading-models"],
  ["`nereid bench`", "nereid-bench"],
  ["`/generate`", "generate"],
  ["argmax()", "argmax"],
  ["Triton's names: one_two", "tritons-names-one_two"],
  ["A – B", "a--b"],
  ["2 of them", "2-of-them"],
])("%s has the anchor of a Git host", (heading, slug) => {
  expect(headingSlug(heading)).toBe(slug)
})

it("equal headings are numbered, and code blocks have no headings", () => {
  const markdown = "# One\n\n## Two\n\n```sh\n# not this\n```\n\n## Two\n\n## [Two](./two.md)\n"
  expect(documentAnchors(markdown)).toEqual(["one", "two", "two-1", "two-2"])
})

it("the title is the first heading, without code marks", () => {
  expect(documentTitle("text\n\n# The `each` handler\n\n# Second\n")).toBe("The each handler")
  expect(documentTitle("text")).toBeUndefined()
})
