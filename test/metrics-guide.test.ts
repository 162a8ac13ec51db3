/** The tests of the guide on metrics, as they stand there. */
import { afterAll } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/metrics.md")
afterAll(() => guide[Symbol.dispose]())

// Their tests are tests of this file.
await import(guide.file("translate.test.ts"))
