/** Checks a view of the page for faults of accessibility. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** A line for each element that breaks a rule. */
export const axeFaults = async (page: Page): Promise<ReadonlyArray<string>> => {
  const lines: ReadonlyArray<string> = await page.evaluate(`${axe}
    axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html.slice(0, 200))))`)
  return lines
}
