import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import * as NodeVersion from "./NodeVersion.ts"

it("a Node that is too old gets the version it needs, its own, and how to get a newer one", () => {
  expect(NodeVersion.problem("20.20.2", ">=22.19", "/usr/bin/node")).toBe(
    `nereid needs Node 22.19 or newer, but /usr/bin/node is Node 20.20.2.\n${NodeVersion.remedy}`,
  )
  expect(NodeVersion.remedy).toContain("https://nodejs.org/en/download")
  expect(NodeVersion.problem("22.19.0", ">=22.19", "/usr/bin/node")).toBeUndefined()
})

it("the entry imports no package before the check but the comparison of versions", () => {
  const read = (file: string) => readFileSync(join(import.meta.dirname, file), "utf8")
  const imports = (text: string) => [...text.matchAll(/^import .*"(.*)"$/gm)].map(([, specifier]) => specifier)
  expect(imports(read("../main.ts"))).toEqual(["node:fs", "./check/NodeVersion.ts"])
  expect(imports(read("NodeVersion.ts"))).toEqual(["create-nereid/internal/NodeVersion"])
  expect(imports(read("../../../create-nereid/src/NodeVersion.ts"))).toEqual([])
})
