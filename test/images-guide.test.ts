/** The test of the guide on pictures, as it stands there. */
import { afterAll } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/images.md")
afterAll(() => guide[Symbol.dispose]())

// Its tests are tests of this file.
await import(guide.file("server.test.ts"))
