/** The program of the guide on simulations, as it stands there, and the table that it shows. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it, vi } from "vitest"
import { Guide } from "../Guide.ts"
import { root } from "../Program.ts"

const path = "docs/guides/simulation.md"
const guide = new Guide(path)
afterAll(() => guide[Symbol.dispose]())

it.each(["choose.ts", "slots.ts"])("prints the table of %s", async (file) => {
  const table = vi.spyOn(console, "table").mockImplementation(() => {})
  await import(guide.file(file))
  const [rows] = table.mock.calls[0] ?? []
  table.mockRestore()
  const [, after = ""] = readFileSync(join(root, path), "utf8").split(`// ${file}\n`)
  const [, , shownTable = ""] = after.split("```")
  const shown = [...shownTable.matchAll(/^│ \d+ +│(.*)│$/gm)]
  const cells = shown.map(([, row = ""]) => row.split("│").map((cell) => cell.trim().replaceAll("'", "")))
  expect(cells.length).toBeGreaterThan(0)
  expect(cells).toEqual(rows.map((row: object) => Object.values(row).map(String)))
})

it("the instance of overload.ts answers in time what it can", async () => {
  const module: unknown = await import(guide.file("overload.ts"))
  const outcomes =
    typeof module === "object" && module !== null && "overload" in module && Array.isArray(module.overload)
      ? module.overload
      : []
  expect(outcomes).toHaveLength(3)
  for (const { share } of outcomes) expect(share).toBeGreaterThan(0.95)
})
