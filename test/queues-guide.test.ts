/** The tests of the guide on queues, as they stand there. */
import { afterAll } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/queues.md")
afterAll(() => guide[Symbol.dispose]())

// Their tests are tests of this file.
await import(guide.file("rank.test.ts"))
await import(guide.file("translate.test.ts"))
await import(guide.file("ordered.test.ts"))
