/** The view of the API: its schemas, requests to try, and streams without an end. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer, Stream } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { axeFaults } from "./Axe.fixture.ts"
import { inBrowser } from "./Page.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

class Half extends Model.Service<Half>()("half", {
  inputs: { x: Tensor.FP16(2) },
  outputs: { x: Tensor.FP16(2) },
}) {}

class Forever extends Model.Service<Forever>()("forever", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

const layers = Layer.mergeAll(
  Model.each(Twice, ({ x }) => ({ y: 2 * x })),
  Model.each(Half, ({ x }) => ({ x })),
  Model.stream(Forever, ({ x }) => Stream.concat(Stream.make({ y: x + 1 }), Stream.never)),
)

const start = () =>
  Server.start([Twice, Half, Forever], layers, {
    http: { host: "127.0.0.1", port: 0 },
    grpc: false,
    metrics: false,
    dashboard: true,
  })

inBrowser("the API view", start, ({ open }) => {
  const operation = async (page: Page, path: string) => {
    const found = page.locator("details.operation").filter({ has: page.getByText(path, { exact: true }) })
    await found.locator("summary").first().click()
    return found
  }

  it("tries the route of a model, with its example", async () => {
    const page = await open("#/api?tag=models%2Ftwice")
    const found = await operation(page, "/v2/models/twice/generate")
    await found.getByLabel("Body").fill('{"x": 21}')
    await found.getByRole("button", { name: "Send" }).click()
    await found.getByText('"y": 42').waitFor()
    expect(await found.getByRole("status").textContent()).toBe("200 OK")
  })

  it("shows the parameters, responses and schemas behind references", async () => {
    const page = await open("#/api?tag=models%2Ftwice")
    const found = await operation(page, "/v2/models/twice/infer")
    await found.getByRole("rowheader", { name: "nereid-timeout-ms" }).waitFor()
    await found.getByText("Response 404: Nothing has this name").waitFor()
    await found.getByText("Request", { exact: true }).click()
    await found.getByText("twice.1.InferRequest").waitFor()
    await found.locator("summary").filter({ hasText: "RequestParameters" }).click()
    await found.locator("pre").filter({ hasText: "sequence_start" }).waitFor()
    expect(await axeFaults(page)).toEqual([])
  })

  it("shows a stream as it arrives, until the user stops it", async () => {
    const page = await open("#/api?tag=models%2Fforever")
    const found = await operation(page, "/v2/models/forever/generate_stream")
    await found.getByLabel("Body").fill('{"x": 6}')
    await found.getByRole("button", { name: "Send" }).click()
    await found.getByText('"y":7').waitFor()
    await found.getByRole("button", { name: "Stop" }).click()
    await found.getByRole("button", { name: "Send", exact: true }).waitFor()
    expect(await found.getByText('"y":7').count()).toBe(1)
    expect(await page.getByRole("alert").count()).toBe(0)
  })

  it("has the streams of the page", async () => {
    const page = await open("#/api?tag=statistics")
    const found = await operation(page, "/live")
    await found.getByRole("button", { name: "Send" }).click()
    await found.getByText('"type":"step"').waitFor()
    await found.getByRole("button", { name: "Stop" }).click()
    await found.getByRole("button", { name: "Send", exact: true }).waitFor()
  })

  it("leads to the form of a model whose requests are binary", async () => {
    const page = await open("#/api?tag=models%2Fhalf")
    const found = await operation(page, "/v2/models/half/infer")
    await found.getByRole("link", { name: "Try the model" }).click()
    await page.getByRole("heading", { name: "half version 1" }).waitFor()
  })
})
