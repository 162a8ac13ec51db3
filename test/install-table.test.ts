/** The table of install sizes in the README, which .ci/install-size.ts measures. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import * as InstallTable from "../.ci/InstallTable.ts"

const rows: ReadonlyArray<InstallTable.Row> = [
  { title: "Client", packages: 7, megabytes: 62, seconds: 5 },
  { title: "Command line, without ONNX Runtime", packages: 26, megabytes: 100, seconds: 9 },
]

const text = `Before.\n\n${InstallTable.print(rows)}\n\nAfter.\n`

const withSize = (megabytes: number): ReadonlyArray<InstallTable.Row> =>
  rows.map((row) => (row.megabytes === 100 ? { ...row, megabytes } : row))

it("sizes within a tenth are no difference, and neither are times", () => {
  expect(InstallTable.differences(text, rows)).toEqual([])
  expect(InstallTable.differences(text, withSize(110))).toEqual([])
  expect(InstallTable.differences(text, withSize(90))).toEqual([])
  const slow = rows.map((row) => ({ ...row, seconds: 600 }))
  expect(InstallTable.differences(text, slow)).toEqual([])
})

it.each([89, 111])("%i MB instead of 100 is a difference", (megabytes) => {
  expect(InstallTable.differences(text, withSize(megabytes))).toEqual([
    `"Command line, without ONNX Runtime" has 100 MB, measured ${megabytes} MB`,
  ])
})

it("missing and excess rows are differences", () => {
  expect(InstallTable.differences("No table.", rows)).toEqual(rows.map(({ title }) => `no row "${title}"`))
  expect(InstallTable.differences(text, rows.slice(0, 1))).toEqual([
    '"Command line, without ONNX Runtime" is not measured',
  ])
})

it("a table is replaced, and nothing around it", () => {
  expect(InstallTable.replace(text, rows.slice(0, 1))).toBe(
    `Before.\n\n${InstallTable.print(rows.slice(0, 1))}\n\nAfter.\n`,
  )
  expect(() => InstallTable.replace("No table.", rows)).toThrow("There is no table")
})

it("the README has the table", () => {
  const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8")
  expect(() => InstallTable.replace(readme, rows)).not.toThrow()
})
