/** The guide on model repositories: its program, beside models that lie where it looks for them. */
import { afterAll, expect, it } from "vitest"
import { RepositoryFixture } from "./fixtures/repository.ts"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/model-repository.md")
afterAll(() => guide[Symbol.dispose]())

it("serves what is in the directory", async () => {
  new RepositoryFixture(guide.file("models")).adding("resnet", 2, 1)
  const { server } = await import(guide.file("server.ts"))
  const index = await fetch(`http://localhost:${server.http.port}/v2/repository/index`, { method: "POST" })
  expect(await index.json()).toEqual([{ name: "resnet", version: "2", state: "READY", reason: "" }])
  await server.stop()
})
