import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { deadLinks } from "./BuiltLinks.ts"

const site = (pages: Readonly<Record<string, string>>): string => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-site-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, "guides"))
  for (const [page, text] of Object.entries(pages)) writeFileSync(join(folder, page), text)
  return folder
}

const links = (...targets: ReadonlyArray<string>) =>
  targets.map((target) => `<a class="x" href="${target}">x</a>`).join("\n")

it("pages, anchors and other files that exist are not dead", () => {
  const folder = site({
    "index.html": `<h1 id="top">Top</h1>${links("/guides/a.html#one", "./guides/a", "/", "/guides/", "#top", "https://example.com/x", "/a.svg")}`,
    "a.svg": "",
    "guides/index.html": links("../index.html#top"),
    "guides/a.html": `<h2 id="one">One</h2>${links("./a.html#one", "/guides/a.html#one")}`,
  })
  expect(deadLinks(folder)).toEqual([])
})

it("a missing page, a missing anchor, and a page outside the base are dead", () => {
  const folder = site({
    "index.html": links("/docs/gone.html", "/docs/guides/a.html#gone", "/guides/a.html", "/docs/guides/a.html#one"),
    "guides/a.html": `<h2 id="one">One</h2>`,
  })
  expect(deadLinks(folder, "/docs/")).toEqual([
    "index.html: /docs/gone.html does not exist",
    "index.html: /docs/guides/a.html#gone has no such anchor",
    "index.html: /guides/a.html is outside the site",
  ])
})
