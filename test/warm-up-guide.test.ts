/** The tests of the guide on warm-up and cache, as they stand there. */
import { afterAll } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/warm-up-and-cache.md")
afterAll(() => guide[Symbol.dispose]())

// Their tests are tests of this file.
await import(guide.file("warm-up.test.ts"))
await import(guide.file("cache.test.ts"))
await import(guide.file("unavailable.test.ts"))
