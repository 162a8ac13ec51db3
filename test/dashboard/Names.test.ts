/** Names that a page must show as text, and that must not change the texts of the page beside them. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { expect, it } from "vitest"
import { inBrowser } from "./Page.fixture.ts"

const reverse = "\u202e"
const name = `<img src=x onerror=alert(1)>?#&%25${reverse}gnp`
const shown = name.replace(reverse, String.raw`\u202e`)

class Odd extends Model.Service<Odd>()(name, {
  inputs: { [`<b>x</b>${reverse}`]: Tensor.scalar("INT32"), [`y${reverse}`]: Tensor.optional(Tensor.FP32(2)) },
  outputs: { [`z${reverse}`]: Tensor.labels([`</td><script>alert(1)</script>${reverse}`, "other"]) },
}) {}

const start = () =>
  Server.start(
    [Odd],
    Model.each(Odd, () => ({ [`z${reverse}`]: "other" as const })),
    { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false, dashboard: true },
  )

/** Opens what is closed, and then what that contains. */
const openAll = `(async () => {
  for (let level = 0; level < 3; level++) {
    for (const closed of document.querySelectorAll("main details:not([open])")) closed.open = true
    await new Promise(requestAnimationFrame)
    await new Promise(requestAnimationFrame)
  }
})()`

inBrowser("a model with a hostile name", start, ({ open, origin }) => {
  const infer = () => {
    const inputs = [{ name: `<b>x</b>${reverse}`, datatype: "INT32", shape: [1], data: [1] }]
    const path = `/v2/models/${encodeURIComponent(name)}/infer`
    return fetch(`${origin()}${path}`, { method: "POST", body: JSON.stringify({ id: `id${reverse}`, inputs }) })
  }

  it.each([
    ["the list", "#/models"],
    ["its view", `#/models/${encodeURIComponent(name)}/1`],
    ["the live view", "#/live"],
    ["the API view", `#/api?tag=${encodeURIComponent(`models/${name}`)}`],
  ])("is text in %s", async (_, view) => {
    expect((await infer()).status).toBe(200)
    const page = await open(view)
    await page
      .getByText(shown)
      .or(page.getByRole("option", { name: shown }))
      .first()
      .waitFor({ state: "attached" })
    await page.evaluate(openAll)
    expect(await page.locator("main").innerText()).not.toContain(reverse)
    expect(await page.locator("main :is(img, script, b)").count()).toBe(0)
  })

  it("is tried", async () => {
    const page = await open("#/models")
    await page.getByRole("link", { name: shown }).click()
    await page.getByRole("button", { name: "Run" }).click()
    await page.locator(".answer").getByText("other").waitFor()
    expect(await page.locator("main").innerText()).not.toContain(reverse)
  })
})
