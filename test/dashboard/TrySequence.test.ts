/** The form of the page on models with sequences: requests that follow one another, and their end. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { axeFaults } from "./Axe.fixture.ts"
import { inBrowser } from "./Page.fixture.ts"

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 4,
  sequence: { state: { SUM: Tensor.scalar("INT32") }, maxIdle: "90 seconds" },
}) {}

class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.utf8() },
  sequence: { state: { REST: Tensor.utf8() }, maxIdle: Infinity },
}) {}

const layers = Layer.mergeAll(
  Model.sequence(Sums, ({ VALUE }, { state: { SUM }, sequence: { isEnd } }) => {
    if (VALUE < 0) throw new Error("no negative values")
    return { outputs: { TOTAL: isEnd ? -(SUM + VALUE) : SUM + VALUE }, state: { SUM: SUM + VALUE } }
  }),
  Model.sequenceStream(Words, function* ({ TEXT }, { state: { REST } }) {
    const words = `${REST}${TEXT}`.split(" ")
    const rest = words.pop() ?? ""
    for (const WORD of words) yield { outputs: { WORD } }
    yield { state: { REST: rest } }
  }),
)

const start = () =>
  Server.start([Sums, Words], layers, {
    http: { host: "127.0.0.1", port: 0 },
    grpc: false,
    metrics: false,
    dashboard: true,
    drainTimeout: "10 millis",
  })

const run = (page: Page) => page.getByRole("button", { name: "Run", exact: true }).click()

const total = (page: Page) => page.getByRole("region", { name: "Output TOTAL" }).locator(".figure").textContent()

const idField = (page: Page) => page.getByLabel("Sequence id")

const sequence = (page: Page) => page.getByRole("group", { name: "Sequence" })

/** Waits for a text in the fields of the sequence. */
const says = (page: Page, text: string) => sequence(page).getByText(text).waitFor()

inBrowser("the form of a model with sequences", start, ({ open, origin }) => {
  const live = async (model = "sums"): Promise<number> =>
    JSON.parse(await (await fetch(`${origin()}/v2/models/${model}/sequences`)).text()).live

  it("keeps the id between requests, and ends the sequence with the last one", async () => {
    const page = await open("#/models/sums/1")
    const id = await idField(page).inputValue()
    expect(id).toMatch(/^[1-9][0-9]*$/)
    await says(page, "The next request starts the sequence.")
    await page.getByLabel(/^VALUE/).fill("5")
    await run(page)
    await says(page, "The sequence has had 1 request. It expires after 90 seconds without one.")
    expect(await total(page)).toBe("5")
    await page.getByLabel(/^VALUE/).fill("7")
    await run(page)
    await says(page, "The sequence has had 2 requests.")
    expect(await total(page)).toBe("12")
    expect(await idField(page).inputValue()).toBe(id)
    expect(await idField(page).evaluate((field: { readonly readOnly?: boolean }) => field.readOnly)).toBe(true)
    expect(await axeFaults(page)).toEqual([])

    await page.getByRole("button", { name: "Run as the last request" }).click()
    await says(page, "The sequence before had 3 requests, and has ended. The next request starts the sequence.")
    expect(await total(page)).toBe("-19")
    expect(await idField(page).inputValue()).not.toBe(id)
    expect(await live()).toBe(0)
    await run(page)
    await says(page, "The sequence has had 1 request.")
    expect(await total(page)).toBe("7")
  })

  it("ends a sequence by a button, and when the page leaves the model", async () => {
    const page = await open("#/models/sums/1")
    const end = page.getByRole("button", { name: "End the sequence" })
    expect(await end.isDisabled()).toBe(true)
    await page.getByLabel(/^VALUE/).fill("5")
    await run(page)
    await says(page, "The sequence has had 1 request.")
    await end.click()
    await says(page, "The sequence before had 1 request, and has ended.")
    await expect.poll(() => live()).toBe(0)
    await run(page)
    await says(page, "The sequence has had 1 request.")
    expect(await live()).toBe(1)
    await page.goto(`${origin()}/#/models/words/1`)
    await page.getByLabel(/^TEXT/).waitFor()
    await expect.poll(() => live()).toBe(0)
  })

  it("shows why a sequence is lost, and starts it again", async () => {
    const page = await open("#/models/sums/1")
    await idField(page).fill("my sequence")
    await page.getByLabel(/^VALUE/).fill("5")
    await run(page)
    await says(page, "The sequence has had 1 request.")
    // Another client ends it.
    const inputs = [{ name: "VALUE", datatype: "INT32", shape: [1, 1], data: [1] }]
    const body = JSON.stringify({ inputs, parameters: { sequence_id: "my sequence", sequence_end: true } })
    expect((await fetch(`${origin()}/v2/models/sums/infer`, { method: "POST", body })).status).toBe(200)
    await run(page)
    const failure = page.getByRole("alert").filter({ hasText: "The request failed." })
    await failure.getByText("SequenceNotFound").waitFor()
    await page.getByText('"ended"').waitFor()
    await says(page, "The server does not have the sequence. The next request starts the sequence.")
    await run(page)
    await says(page, "The sequence has had 1 request.")
    expect(await total(page)).toBe("5")
    expect(await idField(page).inputValue()).toBe("my sequence")
  })

  it("goes on after a request that fails, and refuses an invalid id", async () => {
    const page = await open("#/models/sums/1")
    const value = page.getByLabel(/^VALUE/)
    await value.fill("5")
    await run(page)
    await says(page, "The sequence has had 1 request.")
    await value.fill("-1")
    await run(page)
    await page.getByText("no negative values").waitFor()
    await says(page, "The sequence has had 1 request.")
    await value.fill("1")
    await run(page)
    await says(page, "The sequence has had 2 requests.")
    expect(await total(page)).toBe("6")
    await page.getByRole("button", { name: "End the sequence" }).click()
    await idField(page).fill("0")
    await run(page)
    await page.getByRole("alert").filter({ hasText: "the sequence id must be from 1 to" }).waitFor()
  })

  it("streams the responses of a sequence, and copies and repeats its requests", async () => {
    const page = await open("#/models/words/1")
    const text = page.getByLabel(/^TEXT/)
    await text.fill("one tw")
    await run(page)
    await says(page, "The sequence has had 1 request. It never expires.")
    await text.fill("o ")
    await run(page)
    await says(page, "The sequence has had 2 requests.")
    await page.locator(".answer").getByText("two").waitFor()
    await page.getByRole("button", { name: "TypeScript" }).click()
    await page.getByText("await using session = model.session()").waitFor()
    await page.getByRole("button", { name: "curl" }).click()
    await page.getByText(`"sequence_id":${await idField(page).inputValue()}`).waitFor()

    await page.getByText("Repeat it").click()
    await page.getByLabel("Requests", { exact: true }).fill("20")
    await page.getByRole("button", { name: "Start" }).click()
    await page.getByText("20 done", { exact: true }).waitFor()
    // The sequence of the form is another one.
    expect(await live("words")).toBe(1)
    await text.fill("three ")
    await run(page)
    await says(page, "The sequence has had 3 requests.")
    await page.locator(".answer").getByText("three").waitFor()
  })
})
