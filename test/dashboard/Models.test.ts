/** The views of the models, with a repository under explicit control. */
import { expect, it } from "vitest"
import type { RepositoryFixture } from "../fixtures/repository.ts"
import { inBrowser } from "./Page.fixture.ts"
import { serve } from "./Serve.fixture.ts"

const hostile = `<img src=x onerror="alert(1)">`

const tensors =
  'input [{ name: "X" data_type: TYPE_FP32 dims: [1] }] output [{ name: "Y" data_type: TYPE_FP32 dims: [1] }]'

const ensemble = `platform: "ensemble" max_batch_size: 8
input [{ name: "IN" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "OUT" data_type: TYPE_FP32 dims: [1] }]
ensemble_scheduling { step [
  { model_name: "one" model_version: -1 input_map { key: "X" value: "IN" } output_map { key: "Y" value: "MIDDLE" } },
  { model_name: "two" model_version: -1 input_map { key: "X" value: "MIDDLE" } output_map { key: "Y" value: "OUT" } }
] }`

const write = (repository: RepositoryFixture) => {
  const config = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 500 }"
  for (const [amount, name] of ["one", "two", "spare"].entries()) repository.adding(name, 1, amount + 1, config)
  repository.write("pipe/config.pbtxt", ensemble)
  repository.write("pipe/1/.keep", "")
  repository.write("broken/1/model.onnx", "no model")
  repository.write("hostile/1/model.ts", `throw new Error(${JSON.stringify(hostile)})`)
  repository.write("hostile/config.pbtxt", `backend: "nereid" ${tensors}`)
}

const start = () =>
  serve(
    write,
    "--model-control-mode=explicit",
    ...["one", "two", "pipe", "broken", "hostile"].map((m) => `--load-model=${m}`),
  )

inBrowser("models of a repository", start, ({ open }) => {
  it("come with their state and signature, the failed ones first, with their reason as text", async () => {
    const page = await open("#/models")
    const rows = page.locator("table.models tbody tr")
    await rows.filter({ hasText: "pipe" }).getByText("IN FP32[1] → OUT FP32[1]").waitFor()
    const texts = await rows.allInnerTexts()
    expect(texts.slice(0, 2).map((text) => text.split(/\s/)[0])).toEqual(["broken", "hostile"])
    expect(texts[0]).toMatch(/✕ failed.*model\.onnx/s)
    expect(texts[1]).toContain(hostile)
    expect(await page.getByText("6 models, 2 failed").count()).toBe(1)
    expect(await page.locator("img").count()).toBe(0)
    await rows.filter({ hasText: "spare" }).getByText("○ not loaded").waitFor()
    await rows.filter({ hasText: "pipe" }).getByText("ensemble, batches of up to 8").waitFor()
  })

  it("are filtered, and the link keeps the filter", async () => {
    const page = await open("#/models")
    await page.getByRole("searchbox", { name: "Filter" }).fill("pip")
    await page.getByText("1 of 6 models").waitFor()
    expect(page.url()).toContain("filter=pip")
    await page.reload()
    await page.getByText("1 of 6 models").waitFor()
  })

  it("show how they run: the graph of an ensemble, batches and instances", async () => {
    const page = await open("#/models/pipe/1")
    const graph = page.getByRole("group", { name: "Graph of the ensemble" })
    await graph.waitFor()
    await page.getByText("ensemble of other models, of a model repository").waitFor()
    expect((await graph.locator(".column").allInnerTexts()).map((text) => text.split("\n"))).toEqual([
      ["request", "IN"],
      ["IN", "one", "MIDDLE"],
      ["MIDDLE", "two", "OUT"],
      ["response", "OUT"],
    ])
    await graph.getByRole("link", { name: "one" }).click()
    await page.getByText("with a delay of up to 0.5 ms").waitFor()
    await page.getByText("ONNX file, of a model repository").waitFor()
  })

  it("are loaded and unloaded after a confirmation", async () => {
    const page = await open("#/models/spare")
    await page.getByRole("button", { name: "Load again…" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Load" }).click()
    await page.getByText("● ready").waitFor()
    await page.getByRole("button", { name: "Unload…" }).click()
    const dialog = page.getByRole("dialog", { name: "Unload spare?" })
    await dialog.waitFor()
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Unload…" }).click()
    await dialog.getByRole("button", { name: "Unload", exact: true }).click()
    await page.getByText("○ unavailable").waitFor()
  })

  it("are loaded with a configuration override, and a refused one tells why in full", async () => {
    const page = await open("#/models")
    await page.getByRole("button", { name: "Load a model…" }).click()
    const dialog = page.getByRole("dialog", { name: "Load a model" })
    await dialog.getByLabel("Name").fill("two")
    const override = dialog.getByLabel("Configuration override")
    await override.fill('{"max_batch_size": -1}')
    await dialog.getByRole("button", { name: "Load", exact: true }).click()
    await dialog
      .getByRole("alert")
      .getByText(/failed to load 'two'.*max_batch_size/s)
      .waitFor()
    await override.fill('{"max_batch_size": 3}')
    await dialog.getByRole("button", { name: "Load", exact: true }).click()
    await dialog.waitFor({ state: "detached" })
    await page.getByRole("link", { name: "two", exact: true }).click()
    await page.getByText("up to 3 rows").waitFor()
  })

  it("have a view that says when the server has none of the name", async () => {
    const page = await open("#/models/nothing/1")
    await page.getByText("The server has no such model.").waitFor()
    expect(await page.getByRole("button").count()).toBe(0)
  })
})

inBrowser(
  "models in code beside a repository under explicit control",
  () =>
    serve(
      (repository) => repository.adding("one", 1, 1),
      "examples/add-sub/server.ts",
      "--model-control-mode=explicit",
      "--load-model=one",
    ),
  ({ open }) => {
    it("have no buttons to load and unload", async () => {
      const page = await open("#/models/one/1")
      await page.getByRole("button", { name: "Unload…" }).waitFor()
      await page.getByRole("link", { name: "Models", exact: true }).first().click()
      await page.getByRole("link", { name: "add_sub" }).click()
      await page.getByRole("button", { name: "Run" }).waitFor()
      expect(await page.getByRole("button", { name: /load/i }).count()).toBe(0)
    })
  },
)

const many = (repository: RepositoryFixture) => {
  for (let model = 0; model < 300; model++) repository.adding(`model_${String(model).padStart(3, "0")}`, 1, 0)
}

inBrowser(
  "a server that loads its models once",
  () => serve((repository) => repository.adding("one", 1, 1)),
  ({ open }) => {
    it("has a page without buttons to load and unload", async () => {
      const page = await open("#/models/one/1")
      await page.getByText("● ready").waitFor()
      await page.getByRole("button", { name: "Unload…" }).waitFor({ state: "detached" })
    })
  },
)

inBrowser(
  "300 models",
  () => serve(many, "--model-control-mode=explicit"),
  ({ open }) => {
    it("are listed in parts, and all can be found", async () => {
      const page = await open("#/models")
      await page.getByText("300 models").waitFor()
      const rows = page.locator("table.models tbody tr")
      expect(await rows.count()).toBe(50)
      await page.getByRole("button", { name: "Show 50 more" }).click()
      expect(await rows.count()).toBe(100)
      await page.getByRole("searchbox", { name: "Filter" }).fill("model_299")
      await page.getByRole("link", { name: "model_299" }).waitFor()
    })
  },
)
