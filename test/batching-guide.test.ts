/** The tests of the guide on batching, as they stand there. */
import { afterAll } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/batching.md")
afterAll(() => guide[Symbol.dispose]())

await import(guide.file("models.ts"))
// Their tests are tests of this file.
await import(guide.file("generate.test.ts"))
await import(guide.file("embed.test.ts"))
await import(guide.file("roots.test.ts"))
