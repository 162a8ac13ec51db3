/** The declaration of the guide on overload compiles, and its model has the target. */
import { Duration } from "effect"
import { afterAll, expect, it } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/overload.md")
afterAll(() => guide[Symbol.dispose]())

it("the model of the guide has a latency target", async () => {
  const { Embed } = await import(guide.file("target.ts"))
  expect(Embed.definition.batching.latencyTarget).toEqual(Duration.millis(50))
})
