/** The licences of an install, which .ci/licences.ts lists in the guide, and checks. */
import { expect, it } from "vitest"
import * as LicenceTable from "../.ci/LicenceTable.ts"

const row = (name: string, licence: string): LicenceTable.Row => ({
  name,
  version: "1.0.0",
  licence,
  broughtBy: new Set(["core"]),
})

const listed = (locked: LicenceTable.Locked, ...published: ReadonlyArray<string>) =>
  LicenceTable.rows(locked, published).map(({ name, version, broughtBy }) => [name, version, ...broughtBy].join(" "))

it("an install brings dependencies of dependencies, the nearest version of each", () => {
  const locked = {
    "packages/core": { dependencies: { a: "1", b: "1" } },
    "node_modules/a": { version: "1.0.0", license: "MIT", dependencies: { b: "2" } },
    "node_modules/a/node_modules/b": { version: "2.0.0", license: "MIT", dependencies: { a: "1" } },
    "node_modules/b": { version: "1.0.0", license: "MIT" },
    "node_modules/tool": { version: "1.0.0", license: "MIT" },
  }
  expect(listed(locked, "core")).toEqual(["a 1.0.0 core", "b 1.0.0 core", "b 2.0.0 core"])
})

it("optional peers count for published packages only", () => {
  const optional = { peerDependencies: { peer: "1" }, peerDependenciesMeta: { peer: { optional: true } } }
  const locked = {
    "packages/onnx": optional,
    "packages/core": { dependencies: { a: "1" } },
    "node_modules/a": { version: "1.0.0", license: "MIT", ...optional },
    "node_modules/peer": { version: "1.0.0", license: "MIT" },
  }
  expect(listed(locked, "onnx", "core")).toEqual(["a 1.0.0 core", "peer 1.0.0 onnx"])
})

it("siblings are left out, and platforms of one system share a row", () => {
  const binary = { version: "1.0.0", license: "MIT", cpu: ["x64"] }
  const locked = {
    "packages/core": {},
    "packages/image": { dependencies: { "@nereid/core": "0.1.0", sharp: "1" } },
    "node_modules/@nereid/core": { link: true },
    "node_modules/sharp": {
      version: "1.0.0",
      license: "MIT",
      optionalDependencies: { "@img/sharp-linux-x64": "1", "@img/sharp-linux-arm64": "1" },
    },
    "node_modules/@img/sharp-linux-x64": binary,
    "node_modules/@img/sharp-linux-arm64": binary,
  }
  expect(listed(locked, "core", "image")).toEqual(["@img/sharp-linux-* 1.0.0 image", "sharp 1.0.0 image"])
})

it("a package that the lock file lacks is an error", () => {
  expect(() => LicenceTable.rows({ "packages/core": { dependencies: { a: "1" } } }, ["core"])).toThrow(
    "package-lock.json has no a, which packages/core requires.",
  )
})

it.each(["MIT", "(MIT OR CC0-1.0)", "(Apache-2.0 AND BSD-3-Clause)", "GPL-2.0 OR MIT"])("%s is allowed", (licence) => {
  expect(LicenceTable.problems([row("a", licence)])).toEqual([])
})

it.each(["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "LGPL-3.0-or-later", "UNLICENSED", "SEE LICENSE IN LICENSE"])(
  "'%s' is not allowed",
  (licence) => {
    expect(LicenceTable.problems([row("a", licence)])).toEqual([
      `a 1.0.0, which core brings, has the licence "${licence}"`,
    ])
  },
)

it("the LGPL is allowed for binaries of sharp", () => {
  expect(LicenceTable.problems([row("@img/sharp-win32-*", "Apache-2.0 AND LGPL-3.0-or-later")])).toEqual([])
})

it("the table replaces the one of the guide, and nothing around it", () => {
  const empty = "Before.\n\n| package | version | licence | installed with |\n|---|---|---|---|\n"
  const filled = LicenceTable.replace(`${empty}| old |\n\nAfter.\n`, [row("a", "MIT")])
  expect(filled).toBe(`${empty}| \`a\` | 1.0.0 | MIT | \`core\` |\n\nAfter.\n`)
  expect(() => LicenceTable.replace("No table.", [])).toThrow("There is no table")
})
