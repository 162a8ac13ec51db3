/** The tests of the guide on testing, as they stand there. */
import { afterAll, expect, it } from "vitest"
import { Guide } from "../Guide.ts"
import { Program } from "../Program.ts"

const guide = new Guide("docs/guides/testing.md")
afterAll(() => guide[Symbol.dispose]())

// Their tests are tests of this file.
await import(guide.file("shout.test.ts"))
await import(guide.file("shout.effect.test.ts"))

it("node --test runs its test", async () => {
  const { code, output } = await new Program(["--test", guide.file("shout.node.test.ts")]).ended
  expect(output).toMatch(/pass 1\n/)
  expect(code).toBe(0)
})
