/** The view of the log, with a script that logs. */
import { expect, it } from "vitest"
import type { RepositoryFixture } from "../fixtures/repository.ts"
import { inBrowser } from "./Page.fixture.ts"
import { serve } from "./Serve.fixture.ts"

const hostile = `<script>document.title = "taken"</script>\u202e`

/** The character that reverses the text behind it is visible, and has no effect. */
const shown = hostile.replace("\u202e", String.raw`\u202e`)

const script = `export default {
  initialize: ({ logger }) => logger.warn(${JSON.stringify(hostile)}),
  execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })),
}
`

const config = `backend: "nereid"
input [{ name: "X" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "Y" data_type: TYPE_FP32 dims: [1] }]`

const write = (repository: RepositoryFixture) => {
  repository.write("talker/1/model.ts", script)
  repository.write("talker/config.pbtxt", config)
}

inBrowser(
  "the log",
  () => serve(write),
  ({ open, origin }) => {
    const settings = async () => (await fetch(`${origin()}/v2/logging`)).json()

    it("shows lines as text, with their level, and filters them", async () => {
      const page = await open("#/log")
      const line = page.getByRole("listitem").filter({ hasText: shown })
      await line.getByText("WARN").waitFor()
      expect(await page.title()).toBe("Log – Nereid")
      await page.getByRole("searchbox", { name: "Filter" }).fill("document.title")
      expect(await page.locator("ol.log li").count()).toBe(1)
      await page.getByRole("combobox", { name: /^Show/ }).selectOption("ERROR and above")
      await page.getByText("No lines.").waitFor()
      await page.reload()
      await page.getByText("No lines.").waitFor()
    })

    it("shows a new line as it is logged", async () => {
      const page = await open("#/log?filter=nothing-at-all")
      await fetch(`${origin()}/v2/logging`, { method: "POST", body: '{"log_verbose_level":1}' })
      await page.getByRole("searchbox", { name: "Filter" }).fill("/v2/models/none/ready")
      await fetch(`${origin()}/v2/models/none/ready`)
      await page.locator("ol.log li").first().waitFor()
    })

    it("keeps its pause in the link, and shows the first lines of a view that is opened paused", async () => {
      const page = await open("#/log?paused=true")
      await page.getByRole("listitem").filter({ hasText: shown }).waitFor()
      const count = await page.locator("ol.log li").count()
      await fetch(`${origin()}/v2/logging`, { method: "POST", body: '{"log_verbose_level":1}' })
      await fetch(`${origin()}/v2/models/paused/ready`)
      const other = await open("#/log")
      await other.getByText("/v2/models/paused/ready").first().waitFor()
      expect(await page.locator("ol.log li").count()).toBe(count)
      await page.getByRole("button", { name: "Continue" }).click()
      await page.getByText("/v2/models/paused/ready").first().waitFor()
      expect(new URL(page.url()).hash).toBe("#/log")
      await page.getByRole("button", { name: "Pause" }).click()
      expect(new URL(page.url()).hash).toBe("#/log?paused=true")
    })

    it("switches the levels of the server", async () => {
      const page = await open("#/log")
      await page.getByText("Levels that the server writes").click()
      const warnings = page.getByLabel("warnings")
      await warnings.click()
      await expect.poll(settings).toMatchObject({ log_warning: false })
      await warnings.click()
      await expect.poll(settings).toMatchObject({ log_warning: true })
    })
  },
)
