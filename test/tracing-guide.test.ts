/** The test of the guide on tracing, as it stands there. */
import { afterAll } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/tracing.md")
afterAll(() => guide[Symbol.dispose]())

// Its test is a test of this file.
await import(guide.file("shout.test.ts"))
