/** The page of a server that goes away and comes back. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { it } from "vitest"
import { inBrowser, type PageServer } from "./Page.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

const serve = (port: number) =>
  Server.start(
    [Twice],
    Model.each(Twice, ({ x }) => ({ y: 2 * x })),
    { http: { host: "127.0.0.1", port }, grpc: false, metrics: false, dashboard: true },
  )

let server: PageServer | undefined

const start = async (): Promise<PageServer> => {
  const first = await serve(0)
  server = first
  return { http: first.http, stop: async () => server?.stop() }
}

inBrowser("a server that goes away", start, ({ open, origin }) => {
  it("has a line on the page, which goes on once the server is back", async () => {
    const page = await open("#/live", { expected: /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY/ })
    await page.getByRole("heading", { name: "Process", exact: true }).waitFor()
    await server?.stop()
    await page.getByText("The server does not answer. Trying again…").waitFor()
    server = await serve(Number(new URL(origin()).port))
    await page.getByText("The server does not answer. Trying again…").waitFor({ state: "detached" })
    await page.getByRole("link", { name: "Models", exact: true }).click()
    await page.getByRole("link", { name: "twice" }).waitFor()
  })
})
