/** The page with restricted APIs, with TLS, below another path, by keyboard and for axe. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { axeFaults } from "./Axe.fixture.ts"
import { inBrowser } from "./Page.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32"), name: Tensor.optional(Tensor.utf8()) },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

/** Its name is wider than a phone. */
class Long extends Model.Service<Long>()(`a_model_with_${"a_long_".repeat(10)}name`, {
  inputs: { a_value_with_a_long_name: Tensor.FP32("a_dimension_with_a_long_name", 3) },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

const LongLive = Model.each(Long, () => ({ y: 1 }))

const TwiceLive = Model.each(Twice, ({ x }) => ({ y: 2 * x }))

const local = { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false } as const

const secret = { apis: ["statistics", "model-repository", "logging"], key: "operator", value: "mine" } as const

const views = ["#/models", "#/models/twice/1", `#/models/${Long.definition.name}/1`, "#/live", "#/log", "#/api"]

inBrowser(
  "restricted APIs",
  () => Server.start([Twice], TwiceLive, { ...local, dashboard: true, restrictedApis: { http: [secret] } }),
  ({ open, origin }) => {
    const options = { expected: /status of 403/ }
    const enter = async (page: Page, value: string) => {
      await page.getByLabel("Value of operator").fill(value)
      await page.getByRole("button", { name: "Use" }).click()
    }

    it("ask for their header once, and again after a wrong one", async () => {
      const page = await open("#/models", options)
      await enter(page, "wrong")
      await page.getByText("The server does not accept this value.").waitFor()
      await enter(page, "mine")
      await page.getByRole("link", { name: "twice" }).waitFor()
      await page.getByRole("link", { name: "Live", exact: true }).click()
      await page.getByRole("heading", { name: "Process", exact: true }).waitFor()
      await page.reload()
      await page.getByRole("heading", { name: "Process", exact: true }).waitFor()
    })

    it("keep their secret in the tab", async () => {
      const page = await open("#/models", options)
      await enter(page, "mine")
      await page.getByRole("link", { name: "twice" }).waitFor()
      const other = await page.context().newPage()
      await other.goto(`${origin()}/#/models`)
      await other.getByLabel("Value of operator").waitFor()
    })

    it("show their refusal to a user without the header, and the rest goes on", async () => {
      const page = await open("#/models/twice/1", options)
      await page.getByRole("button", { name: "Go on without" }).click()
      await page.getByLabel(/^x/).fill("4")
      await page.getByRole("button", { name: "Run" }).click()
      await page.locator(".answer .figure").getByText("8").waitFor()
      await page.getByRole("link", { name: "Live", exact: true }).first().click()
      await page.getByText("The server gives this page no live data.").waitFor()
      await page.getByText("This API is restricted, expecting header 'operator'").waitFor()
      await page.getByRole("link", { name: "Models", exact: true }).first().click()
      await page.getByText("The models cannot be listed.").waitFor()
      expect(await page.getByText("Reading the models…").count()).toBe(0)
      await page.getByRole("button", { name: "Try again" }).click()
      await enter(page, "mine")
      await page.getByRole("link", { name: "twice" }).waitFor()
    })
  },
)

inBrowser(
  "a page below another path",
  () => Server.start([Twice], TwiceLive, { ...local, dashboard: { path: "/ops" } }),
  ({ open }) => {
    it("works as at /, with live data", async () => {
      const page = await open("ops#/live")
      await page.getByRole("heading", { name: "Process", exact: true }).waitFor()
      expect(new URL(page.url()).pathname).toBe("/ops/")
    })
  },
)

const withTls = async () => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-page-tls-"))
  const { cert, key } = authority().issue("localhost")
  const files = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key)
  const server = await Server.start([Twice], TwiceLive, { ...local, dashboard: true, tls: { http: files } })
  const stop = async () => {
    await server.stop()
    rmSync(folder, { recursive: true })
  }
  return { http: server.http, hasTls: true, stop }
}

inBrowser("a page with TLS", withTls, ({ open, origin }) => {
  it("tries a model, has live data, and tells clients the address with TLS", async () => {
    const page = await open("#/models/twice/1")
    await page.getByLabel(/^x/).fill("4")
    await page.getByRole("button", { name: "Run" }).click()
    await page.locator(".answer .figure").getByText("8").waitFor()
    await page.getByRole("button", { name: "curl" }).click()
    await page.getByLabel("Program in curl").getByText(origin()).waitFor()
    await page.getByRole("link", { name: "Live", exact: true }).first().click()
    await page.getByRole("heading", { name: "Process", exact: true }).waitFor()
  })
})

inBrowser(
  "the page",
  () => Server.start([Twice, Long], Layer.merge(TwiceLive, LongLive), { ...local, dashboard: true }),
  ({ open }) => {
    describe.each(["light", "dark"] as const)("in %s colours", (colorScheme) => {
      it.each(views)("has no fault that axe finds, at %s", async (view) => {
        const page = await open(view, { colorScheme })
        await page.locator("h1").waitFor()
        await page.locator('[aria-busy="true"]').first().waitFor({ state: "detached" })
        expect(await axeFaults(page)).toEqual([])
      })
    })

    it.each(views)("fits on a phone, at %s", async (view) => {
      const page = await open(view, { viewport: { width: 360, height: 740 } })
      await page.locator("h1").waitFor()
      await page.locator('[aria-busy="true"]').first().waitFor({ state: "detached" })
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(360)
      const cut = `[...document.querySelectorAll("table.models")].some((table) => table.scrollWidth > table.clientWidth)`
      expect(await page.evaluate(cut)).toBe(false)
    })

    it("is used by keyboard", async () => {
      const page = await open("#/models")
      await page.getByRole("link", { name: "twice" }).waitFor()
      const press = async (key: string) => {
        await page.keyboard.press(key)
        return page.evaluate("document.activeElement?.textContent")
      }
      expect(await press("Tab")).toBe("Skip to the content")
      await press("Enter")
      expect(await page.evaluate("document.activeElement?.id")).toBe("main")
      let focused = await press("Tab")
      for (let tabs = 0; focused !== "twice" && tabs < 20; tabs++) focused = await press("Tab")
      await press("Enter")
      await page.getByRole("heading", { name: "twice" }).waitFor()
      expect(await page.evaluate("document.activeElement?.id")).toBe("main")
    })
  },
)
