import { posix, win32 } from "node:path"
import { expect, it } from "vitest"
import * as ModuleText from "./ModuleText.ts"

it.each([
  [posix, "/app/models.ts", "/app/models/shout/1", "../../../models.ts"],
  [posix, "/app/models.ts", "/app", "./models.ts"],
  [win32, "C:\\app\\src\\models.ts", "C:\\app\\models\\shout\\1", "../../../src/models.ts"],
  [win32, "C:\\app\\models.ts", "C:\\app", "./models.ts"],
  [win32, "D:\\my app\\models.ts", "C:\\app\\models\\shout\\1", "file:///D:/my%20app/models.ts"],
])("imports the module by a path with slashes, or by a URL from another drive", (path, module, folder, specifier) => {
  const text = ModuleText.make({ path: module, names: ["Shout", "default"] }, folder, path)
  expect(text).toContain(`\nexport { Shout, default as Default } from "${specifier}"\n`)
})
