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
    await fact(page, "Requests").getByText(/^\d+,/).waitFor()
    const { 0: count = "" } = before.split(",")
    await infer(1)
    await page.getByRole("button", { name: "Continue" }).click()
    await fact(page, "Requests")
      .getByText(new RegExp(`^${Number(count) + 2},`))
      .waitFor()
  })

  it("makes the page poll the index only while live data does not flow", async () => {
    const page = await open("#/live", { expected: /status of 404/ })
    let reads = 0
    page.on("request", (request) => void (reads += Number(request.url().endsWith("/v2/repository/index"))))
    await page.clock.install()
    const opened = async () => {
      await page.reload()
      await page.getByText("Waiting for live data…").waitFor({ state: "detached" })
    }
    await opened()
    reads = 0
    await page.clock.runFor(30_000)
    await page.evaluate("fetch('/v2').then(({ status }) => status)")
    // The first message of live data makes the page read the index once.
    expect(reads).toBeLessThanOrEqual(1)
    await page.route("**/live", (route) => route.fulfill({ status: 404 }))
    await opened()
    reads = 0
    await page.clock.runFor(30_000)
    await expect.poll(() => reads).toBeGreaterThan(5)
  })

  it("says why the server refuses live data for now, and tries again", async () => {
    const page = await open("#/models", { expected: /status of 503/ })
    const busy = "64 viewers have this stream open, no more are allowed"
    await page.route("**/live", (route) => route.fulfill({ status: 503, body: busy }))
    await page.goto(`${origin()}/#/live`)
    await page.reload()
    await page.getByText(busy).waitFor()
    await page.unroute("**/live")
    await page.getByRole("heading", { name: "Process", exact: true }).waitFor()
    expect(await page.getByText(busy).count()).toBe(0)
  })
})
