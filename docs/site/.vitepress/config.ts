/** VitePress's configuration. build.ts writes the pages and the navigation first. */
import { readFileSync } from "node:fs"
import { headingSlug } from "../HeadingSlug.ts"
import type { Navigation } from "../Navigation.ts"

const { guides, examples, reference }: Navigation = JSON.parse(
  readFileSync(new URL("../dist/navigation.json", import.meta.url), "utf8"),
)

const tasks = [...guides, examples].map((group) => ({ ...group, collapsed: true }))
const packages = reference.map((group) => ({ ...group, collapsed: true }))

export default {
  title: "Nereid",
  description: "Serve models from TypeScript, typed end to end, over the v2 inference protocol",
  lang: "en",
  srcDir: "dist/pages",
  outDir: "dist/site",
  cacheDir: "dist/cache",
  // Without clean URLs, any static host serves the pages.
  cleanUrls: false,
  markdown: {
    anchor: { slugify: headingSlug },
    toc: { slugify: headingSlug },
    // config.pbtxt is a message as text, which has no highlighting of its own.
    languageAlias: { pbtxt: "proto", promql: "sql" },
  },
  // The esbuild of package.json is newer than the one of Vite 5: it knows es2024, and cannot lower to Vite 5's targets.
  vite: { build: { target: "es2022", chunkSizeWarningLimit: 4000 } },
  // Room for the code, which has up to 120 columns.
  head: [
    [
      "style",
      {},
      ".VPDoc.has-aside .content-container { max-width: 840px !important } :root { --vp-code-font-size: 13px }",
    ],
  ],
  themeConfig: {
    nav: [
      ...guides,
      {
        text: "Reference",
        items: reference.flatMap(({ text, items }) => items.slice(0, 1).map(({ link }) => ({ text, link }))),
      },
    ],
    sidebar: [
      { text: "Introduction", link: "/" },
      ...tasks,
      { text: "Reference", collapsed: true, items: [{ text: "API", link: "/reference/" }, ...packages] },
    ],
    outline: { level: [2, 3] },
    search: { provider: "local" },
  },
}
