/** The view of the load, with a model in code. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { inBrowser } from "./Page.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

const TwiceLive = Model.each(Twice, ({ x }) =>
  x < 0 ? Effect.die(new Error("negative")) : Effect.succeed({ y: 2 * x }),
)

const start = () =>
  Server.start([Twice], TwiceLive, {
    http: { host: "127.0.0.1", port: 0 },
    grpc: false,
    metrics: false,
    dashboard: true,
    logging: { file: "/dev/null" },
  })

const body = (x: number) => ({ id: `try ${x}`, inputs: [{ name: "x", datatype: "INT32", shape: [1], data: [x] }] })

inBrowser("the live view", start, ({ open, origin }) => {
  const infer = (x: number) =>
    fetch(`${origin()}/v2/models/twice/infer`, { method: "POST", body: JSON.stringify(body(x)) })
  const fact = (page: Page, term: string) => page.locator("dl.facts > div").filter({ hasText: term }).locator("dd")

  it("shows requests, errors by reason, latency and batches, and the requests before it was opened", async () => {
    for (let request = 0; request < 3; request++) expect((await infer(request)).status).toBe(200)
    expect((await infer(-1)).status).toBe(500)
    const page = await open("#/live?seconds=600")
    await fact(page, "Requests").getByText(/^3, /).waitFor()
    expect(await fact(page, "Errors").innerText()).toMatch(/^1: 1 \w+$/)
    expect(await fact(page, "Latency").innerText()).toMatch(/^p50 [\d.]+ (µs|ms), p95 /)
    expect(await fact(page, "Batches").innerText()).toMatch(/of 1 rows on average$/)
    await page
      .getByRole("row", { name: /^twice 1/ })
      .first()
      .waitFor()
    await infer(100)
    await fact(page, "Requests").getByText(/^4, /).waitFor()
    await page.getByRole("row", { name: /twice 1 try 100/ }).waitFor()
  })

  it("shows the process", async () => {
    const page = await open("#/live")
    for (const title of ["Memory", "Delay of the event loop", "Requests per second"]) {
      await page.locator("figure").filter({ hasText: title }).locator("canvas").waitFor()
    }
    await page
      .locator("figure")
      .filter({ hasText: "Memory" })
      .getByText(/resident [\d.]+ MB/)
      .waitFor()
  })

  it("keeps the model, the time and the pause in its link", async () => {
    await infer(1)
    const page = await open("#/live")
    await page.getByRole("combobox", { name: /^Model/ }).selectOption("twice, version 1")
    await page.getByRole("combobox", { name: /^Time/ }).selectOption("10 minutes")
    await page.getByRole("button", { name: "Pause" }).click()
    const before = await fact(page, "Requests").innerText()
    await infer(1)
    expect(new URL(page.url()).hash).toBe("#/live?model=twice%2F1&seconds=600&paused=true")
    await page.reload()
    await page.getByRole("button", { name: "Continue" }).waitFor()
    expect(await page.getByRole("combobox", { name: /^Model/ }).inputValue()).toBe("twice/1")
    await page.getByRole("button", { name: "Continue" }).click()
    const { 0: count = "" } = before.split(",")
    await fact(page, "Requests")
      .getByText(new RegExp(`^${Number(count) + 1},`))
      .waitFor()
  })
})
