import { expect, it } from "vitest"
import * as WorkspaceName from "./WorkspaceName.ts"

const longest = "a".repeat(204)

it.each(["a", "my-models", "my_models", "models.v2", "3d", "com", "com10", "console", "test", longest])(
  "allows %s",
  (name) => {
    expect(() => WorkspaceName.check(name)).not.toThrow()
    expect(`@${name}/contract`.length).toBeLessThanOrEqual(214)
  },
)

it.each([
  ["", "use lower-case letters and digits, with single '-', '_' or '.' between them, as in my-models"],
  ["..", "use lower-case"],
  ["MyModels", "use lower-case"],
  ["my models", "use lower-case"],
  ["modèles", "use lower-case"],
  ["-models", "use lower-case"],
  [".models", "use lower-case"],
  ["_models", "use lower-case"],
  ["models.", "use lower-case"],
  ["my..models", "use lower-case"],
  ["a\nb", "use lower-case"],
  ["a\0b", "use lower-case"],
  ["../models", "it is a path; change to the parent directory, and give the name alone"],
  ["models/", "it is a path"],
  ["/", "it is a path"],
  ["C:\\models", "it is a path"],
  ["@acme/models", "it is a path"],
  ["con", "Windows reserves it for a device"],
  ["nul.txt", "Windows reserves it for a device"],
  ["com1", "Windows reserves it for a device"],
  ["nereid", "its packages would have names of Nereid's own, such as @nereid/server"],
  ["node_modules", "npm uses it"],
  ["favicon.ico", "npm does not allow it"],
  [`${longest}a`, "it has 205 characters, the maximum is 204"],
])("refuses %j", (name, reason) => {
  expect(() => WorkspaceName.check(name)).toThrow(
    expect.objectContaining({
      _tag: "WorkspaceError",
      message: expect.stringContaining(`cannot be the name of a workspace: ${reason}`),
    }),
  )
})

it("shortens a long name in the message, and escapes it", () => {
  expect(() => WorkspaceName.check("a".repeat(300))).toThrow(`"${"a".repeat(50)}…" cannot be`)
  expect(() => WorkspaceName.check("a\u001b[1m")).toThrow(String.raw`"a\u001b[1m" cannot be`)
})
