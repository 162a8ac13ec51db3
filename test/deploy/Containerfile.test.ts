/** The parser of Containerfile.ts. */
import { expect, it } from "vitest"
import { execForm, parse } from "./Containerfile.ts"

it("a Containerfile is stages of instructions, without comments and with joined lines", () => {
  expect(parse("# a\nFROM a AS b\nRUN x \\\n  # no\n  && y\n\nFROM b\nCOPY --from=b /a /b/\n")).toEqual([
    { name: "b", base: "a", instructions: [{ keyword: "RUN", options: new Map(), text: "x && y" }] },
    {
      name: "1",
      base: "b",
      instructions: [{ keyword: "COPY", options: new Map([["from", "b"]]), text: "/a /b/" }],
    },
  ])
})

it("an instruction before the first stage is an error", () => {
  expect(() => parse("RUN x\n")).toThrow("RUN before FROM")
})

it("a command is a list of strings", () => {
  const command = (text: string) => execForm({ keyword: "CMD", options: new Map(), text })
  expect(command('["serve", "a b"]')).toEqual(["serve", "a b"])
  expect(() => command("[1]")).toThrow("CMD [1]: not a list of strings")
  expect(() => command("serve")).toThrow("Unexpected token")
})
