/** Checks a view of the page for faults of accessibility. */
import axe from "axe-core"
import type { Page } from "playwright-core"

/** A line for each element that breaks a rule. */
export const axeFaults = async (page: Page): Promise<ReadonlyArray<string>> => {
  const lines: ReadonlyArray<string> = await page.evaluate(`${axe.source}
    axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html.slice(0, 200))))`)
  return lines
}
