/** The page opens in a browser, and shows the models of its server. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { expect, it } from "vitest"
import { inBrowser } from "./Page.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

const start = () =>
  Server.start(
    [Twice],
    Model.each(Twice, ({ x }) => ({ y: 2 * x })),
    { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false, dashboard: true },
  )

inBrowser("the page", start, ({ open }) => {
  it("lists the models of its server", async () => {
    const page = await open()
    await page.getByRole("link", { name: "twice" }).waitFor()
    expect(await page.title()).toBe("Models – Nereid")
  })
})
