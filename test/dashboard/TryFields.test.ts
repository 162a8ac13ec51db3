/** The form of the page on models of every kind of field, output and error. */
import { describe, expect, it } from "vitest"
import type { Page } from "playwright-core"
import { axeFaults } from "./Axe.fixture.ts"
import { inBrowser } from "./Page.fixture.ts"
import { hostile, startTried } from "./TriedModels.fixture.ts"

const run = (page: Page) => page.getByRole("button", { name: "Run" }).click()

const output = (page: Page, name: string) => page.getByRole("region", { name: `Output ${name}` })

const failure = (page: Page) => page.getByRole("alert").filter({ hasText: "The request failed." })

/** A `.npy` file of version 1. */
const npy = (dtype: string, shape: string, data: Uint8Array): Buffer => {
  const header = `{'descr': '${dtype}', 'fortran_order': False, 'shape': (${shape}), }`.padEnd(117) + "\n"
  return Buffer.concat([Buffer.from("\x93NUMPY\x01\x00v\x00", "latin1"), Buffer.from(header), data])
}

inBrowser("the form of a model", startTried, ({ open }) => {
  it("sends labels, exact integers, numbers, yes or no, optional inputs and parameters", async () => {
    const page = await open("#/models/options/1")
    await page.getByLabel(/^COLOUR/).selectOption("green")
    await page.getByLabel(/^LARGE/).fill("9007199254740993")
    await page.getByLabel(/^SMALL/).fill("255")
    await page.getByLabel(/^ON/).check()
    await page.getByLabel("temperature").fill("0.5")
    await page.getByLabel("Send seed").check()
    await page.getByLabel("seed", { exact: true }).fill("9223372036854775807")
    await run(page)
    expect(await output(page, "TEXT").locator("pre").textContent()).toBe(
      "green 255 true no note 0.5 9223372036854775807",
    )
    expect(await output(page, "LARGE").locator(".figure").textContent()).toBe("9007199254740993")
    await page.getByLabel("Send NOTE").check()
    await page.getByLabel(/^NOTE/).fill("two\nlines")
    await run(page)
    await page.getByText("green 255 true two").waitFor()
  })

  it("says which value is out of range, and sends nothing", async () => {
    const page = await open("#/models/options/1")
    await page.getByLabel(/^SMALL/).fill("256")
    await run(page)
    await page.getByRole("alert").filter({ hasText: "SMALL: 256 is not in the range of UINT8, 0 to 255" }).waitFor()
    await page.getByLabel(/^SMALL/).fill("1")
    await page.getByLabel("temperature").fill("3")
    await run(page)
    await page.getByRole("alert").filter({ hasText: "parameter temperature: must be at most 2" }).waitFor()
  })

  it("sends what was typed within the same frame", async () => {
    const page = await open("#/models/countdown/1")
    await page.getByLabel(/^FROM/).focus()
    await page.evaluate(`(async () => {
      const field = document.activeElement
      await new Promise(requestAnimationFrame)
      field.value = "2"
      field.dispatchEvent(new InputEvent("input", { bubbles: true }))
      const { port1, port2 } = new MessageChannel()
      port1.postMessage("")
      await new Promise((resolve) => (port2.onmessage = resolve))
      field.form.requestSubmit()
    })()`)
    await page.getByText("Response 2, after").waitFor()
  })

  it("makes a form of a JSON Schema", async () => {
    const page = await open("#/models/order/1")
    await page.getByLabel("customer").fill('Ann "A" O\'Neil')
    await page.getByLabel("amount").fill("11")
    await page.getByText("must be at most 10").first().waitFor()
    await page.getByLabel("amount").fill("3")
    await page.getByLabel("express").check()
    await page.getByLabel("size").selectOption("large")
    await page.getByLabel("Add to tags").click()
    await page.getByLabel("Add to tags").click()
    await page.getByLabel("tags 1", { exact: true }).fill("new")
    await page.getByLabel("Remove tags 2").click()
    await page.getByLabel("pay: kind").selectOption("cash")
    await page.getByLabel("Send note").check()
    await page.getByLabel("note", { exact: true }).fill("ring twice")
    await page.getByLabel("Write ORDER as JSON").check()
    expect(JSON.parse(await page.getByLabel(/^ORDER/).inputValue())).toEqual({
      customer: 'Ann "A" O\'Neil',
      amount: 3,
      express: true,
      size: "large",
      tags: ["new"],
      pay: { kind: "cash" },
      note: "ring twice",
    })
    await page.getByLabel("Write ORDER as JSON").uncheck()
    expect(await page.getByLabel("pay: kind").inputValue()).toBe("1")
    await run(page)
    const tree = output(page, "ECHO")
    await tree.getByText("ring twice").waitFor()
    expect(await tree.textContent()).toContain("amount: 3")
  })

  it("fills a tensor of variable dims with random values", async () => {
    const page = await open("#/models/twice/1")
    await page.getByLabel("Source of x").selectOption("random")
    await page.getByLabel("n", { exact: true }).fill("5")
    await run(page)
    const timing = page.locator(".answer .timing")
    expect(await timing.textContent()).toMatch(/^Latency.*in the server.*queue.*input.*compute.*output.*Batch1 row$/)
    const table = output(page, "doubled").getByRole("table")
    await table.waitFor()
    expect(await table.getByRole("row").count()).toBe(6)
    const cells = await table.getByRole("cell").allTextContents()
    expect(cells.length).toBe(15)
    expect(cells.map(Number).every((value) => value >= 0 && value <= 2)).toBe(true)
    expect(await output(page, "halves").locator("pre").textContent()).toBe("0 0.5 1 1.5 2")
  })

  it("reads values as numbers and as JSON, and FP16", async () => {
    const page = await open("#/models/twice/1")
    await page.getByLabel("Values of x").fill("1, 2; 3\n4 5 6e0")
    await page.getByLabel("Send y").check()
    await page.getByLabel("Values of y").fill("[0.1, -65504]")
    await run(page)
    await output(page, "doubled").getByRole("cell", { name: "12", exact: true }).waitFor()
    expect(await output(page, "halves").locator("pre").textContent()).toBe("0.1 -65504")
    await page.getByLabel("Values of x").fill("1 2")
    await page.getByText("[n, 3] needs a multiple of 3 values, but these are 2").waitFor()
  })

  it("reads a .npy file, and checks its dtype and shape", async () => {
    const page = await open("#/models/twice/1")
    await page.getByLabel("Source of x").selectOption("npy")
    const choose = page.getByLabel("Choose a file")
    const send = (buffer: Buffer) => choose.setInputFiles({ name: "x.npy", mimeType: "", buffer })
    await send(npy("<f8", "2, 3", new Uint8Array(48)))
    await page.getByText('the file has float64, but FP32 needs float32: use array.astype("float32")').waitFor()
    await send(npy("<f4", "3, 2", new Uint8Array(24)))
    await page.getByText("the shape [3, 2] does not fit [n, 3]").waitFor()
    await send(npy("<f4", "2, 3", new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 60).buffer)))
    await run(page)
    await output(page, "doubled").getByRole("cell", { name: "120", exact: true }).waitFor()
  })

  it("makes a tensor of a picture's pixels, at the size that is set", async () => {
    const page = await open("#/models/colours/1")
    const png = await page.evaluate(`(() => {
      const canvas = document.createElement("canvas")
      canvas.width = canvas.height = 40
      const context = canvas.getContext("2d")
      context.fillStyle = "rgb(200, 100, 50)"
      context.fillRect(0, 0, 40, 40)
      return canvas.toDataURL("image/png").split(",")[1]
    })()`)
    await page.getByLabel("h", { exact: true }).fill("16")
    await page.getByLabel("w", { exact: true }).fill("12")
    const buffer = Buffer.from(String(png), "base64")
    await page.getByLabel("Choose a file").setInputFiles({ name: "colour.png", mimeType: "image/png", buffer })
    await page.getByText("12 × 16, as the model gets it").waitFor()
    await run(page)
    await output(page, "pixels").getByLabel("Picture of pixels").waitFor()
    const scores = await output(page, "mean").getByRole("rowheader").allTextContents()
    expect(scores).toEqual(["0", "1", "2"])
    expect(await output(page, "mean").textContent()).toContain("200")
  })

  describe("shows hostile texts as text", () => {
    it.each(["markup", "direction", "controls"] as const)("%s", async (kind) => {
      const page = await open("#/models/hostile/1")
      await page.getByLabel(/^KIND/).selectOption(kind)
      await run(page)
      const shown = (await output(page, "TEXT").locator("pre").textContent()) ?? ""
      const expected = {
        markup: hostile.markup,
        direction: "abc\\u202etxt.exe\\u202c \u05e9\u05dc\u05d5\u05dd",
        controls: "nul\u2400 bell\u2407 escape\u241b[31m delete\u2421",
      }
      expect(shown).toBe(expected[kind])
      expect(await output(page, "CLASS").locator(".figure bdi").textContent()).toBe("<img src=x onerror=alert(1)>")
      expect(await page.locator(".answer img, .answer script").count()).toBe(0)
      expect(await page.title()).toBe("hostile – Nereid")
    })

    it("in an error", async () => {
      const page = await open("#/models/hostile/1")
      await page.getByLabel(/^KIND/).selectOption("<b>error</b>")
      await run(page)
      expect(await failure(page).textContent()).toContain(hostile.markup)
      expect(await page.locator(".answer img, .answer script").count()).toBe(0)
    })
  })

  it("shows a declared error with its tag, status and fields", async () => {
    const page = await open("#/models/strict/1")
    await page.getByLabel(/^TEXT/).fill("far too long")
    await run(page)
    expect(await failure(page).textContent()).toContain("(TooLong, status 422)")
    expect(await page.locator(".answer .json").textContent()).toContain("limit: 5")
  })

  it("shows the error that a stream ends with, behind its responses", async () => {
    const page = await open("#/models/countdown/1")
    await page.getByLabel(/^FROM/).fill("3")
    await run(page)
    expect(await failure(page).textContent()).toContain("the end")
    await page.getByText("Response 3, after").waitFor()
    expect(await output(page, "N").locator(".figure").textContent()).toBe("3")
  })

  it("tells why HTTP has no stream of 16-bit floats", async () => {
    const page = await open("#/models/halves/1")
    await page.getByText("JSON has no form for the BF16 of half. Clients call it over gRPC.").waitFor()
    expect(await page.getByRole("button", { name: "Run" }).count()).toBe(0)
  })

  it("shows bytes as what they are: a picture, JSON, text or bytes", async () => {
    const page = await open("#/models/mirror/1")
    await page.getByLabel("Or a text for DATA").fill('{"a": [1, 2]}')
    await run(page)
    await output(page, "DATA").getByText("{1}").waitFor()
    const buffer = Buffer.from([0, 255, 1])
    await page.getByLabel("Choose a file").setInputFiles({ name: "some.bin", mimeType: "", buffer })
    await page.getByText("some.bin").waitFor()
    await run(page)
    await output(page, "DATA").getByText("00 ff 01").waitFor()
    await output(page, "DATA").getByText("Save them").waitFor()
  })

  it("shows the times of the server, and the size of the batch, where the server tells them", async () => {
    const page = await open("#/models/strict/1")
    const timing = 'queue;dur=0.12, input;dur=0.01, compute;dur=1.3, output;dur=0.02, batch;desc="8"'
    await page.route("**/infer", async (route) => {
      expect(route.request().headers()["nereid-timing"]).toBe("1")
      const response = await route.fetch()
      await route.fulfill({ response, headers: { ...response.headers(), "server-timing": timing } })
    })
    await run(page)
    await page.getByText("8 rows").waitFor()
    const times = page.locator(".answer .timing")
    expect(await times.textContent()).toMatch(/^Latency.*queue120 µs.*compute1\.3 ms.*Batch8 rows$/)
    await page.getByText("Repeat it").click()
    await page.getByLabel("Requests").fill("5")
    await page.getByRole("button", { name: "Start" }).click()
    await page.getByText("5 done", { exact: true }).waitFor()
    expect(await page.getByRole("table", { name: "Batch sizes" }).textContent()).toContain("85")
  })

  it.each(["order", "options", "twice", "colours", "mirror", "hostile"])(
    "of %s has no fault that axe finds",
    async (name) => {
      const page = await open(`#/models/${name}/1`)
      await page.getByRole("button", { name: "Run" }).waitFor()
      for (const box of await page.getByRole("checkbox", { name: /^Send/ }).all()) await box.check()
      await run(page)
      await page
        .getByText(/^Answer$|cannot be sent/)
        .first()
        .waitFor()
      expect(await axeFaults(page)).toEqual([])
    },
  )

  it("repeats a request, some at the same time", async () => {
    const page = await open("#/models/strict/1")
    await page.getByText("Repeat it").click()
    await page.getByLabel("Requests").fill("200")
    await page.getByLabel("At the same time").fill("8")
    await page.getByRole("button", { name: "Start" }).click()
    const results = page.getByRole("region", { name: "Results of the repetition" })
    await results.getByText("200 done", { exact: true }).waitFor()
    expect(await results.textContent()).toMatch(
      /Throughput[\d.]+ \/ s.*p50[\d.]+ [µm]s.*p95[\d.]+ [µm]s.*p99[\d.]+ [µm]s/,
    )
    await page.getByLabel(/^TEXT/).fill("far too long")
    await page.getByRole("button", { name: "Start" }).click()
    await results.getByText("200 done, 200 failed").waitFor()
    expect(await results.getByRole("table", { name: "Errors" }).textContent()).toContain("TooLong, status 422200")
  })

  it("stops a repetition", async () => {
    const page = await open("#/models/strict/1")
    await page.getByText("Repeat it").click()
    await page.getByLabel("Requests").fill("99999")
    await page.getByRole("button", { name: "Start" }).click()
    expect(await page.getByLabel("Requests").inputValue()).toBe("10000")
    await page.getByText(/\d+ of 10000 done/).waitFor()
    await page
      .getByLabel("Repeat it")
      .or(page.getByRole("button", { name: "Stop" }))
      .last()
      .click()
    await page.getByText(/^\d+ done$/).waitFor()
  })

  it("copies the request as a program", async () => {
    const page = await open("#/models/strict/1", { permissions: ["clipboard-read", "clipboard-write"] })
    await page.getByLabel(/^TEXT/).fill("it's")
    await page.getByRole("button", { name: "curl" }).click()
    const program = page.getByLabel("Program in curl")
    expect(await program.textContent()).toContain(`"data":["it'\\''s"]`)
    await page.getByRole("button", { name: "Copy", exact: true }).click()
    await page.getByText("Copied.").waitFor()
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(await program.textContent())
    await page.getByRole("button", { name: "Python" }).click()
    expect(await page.getByLabel("Program in Python").textContent()).toContain("import tritonclient.http as triton")
    await page.getByRole("button", { name: "TypeScript" }).click()
    expect(await page.getByLabel("Program in TypeScript").textContent()).toContain("class Strict extends Model.Service")
  })
})
