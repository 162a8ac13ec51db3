/** The page in Firefox: its models, a try, live data, and a drawing. The other tests of the page run in Chromium. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer, Stream } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { Firefox, program } from "./Firefox.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
}) {}

class Count extends Model.Service<Count>()("count", {
  inputs: { to: Tensor.scalar("INT32") },
  outputs: { n: Tensor.scalar("INT32") },
}) {}

class Ink extends Model.Service<Ink>()("ink", {
  inputs: { image: Tensor.FP32(1, 28, 28) },
  outputs: { ink: Tensor.scalar("FP32") },
}) {}

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { sum: Tensor.scalar("INT32") },
  sequence: { state: { SUM: Tensor.scalar("INT32") } },
}) {}

const layers = Layer.mergeAll(
  Model.each(Twice, ({ x }) => ({ y: 2 * x })),
  Model.stream(Count, ({ to }) => Stream.range(1, to).pipe(Stream.map((n) => ({ n })))),
  Model.sequence(Sums, ({ x }, { state: { SUM } }) => ({ outputs: { sum: SUM + x }, state: { SUM: SUM + x } })),
  Model.each(Ink, ({ image }) => ({ ink: image.data.reduce((sum, value) => sum + value, 0) })),
)

const start = () =>
  Server.start([Twice, Count, Sums, Ink], layers, {
    http: { host: "127.0.0.1", port: 0 },
    grpc: false,
    metrics: false,
    dashboard: true,
    drainTimeout: "10 millis",
  })

if (program === undefined)
  console.log("Skipped the page in Firefox: there is no Firefox on the PATH, nor in the environment variable FIREFOX")

describe.skipIf(program === undefined)("the page in Firefox", () => {
  let server: Awaited<ReturnType<typeof start>>
  let firefox: Firefox

  beforeAll(async () => {
    server = await start()
    firefox = await Firefox.start(program ?? "")
  }, 60_000)
  afterAll(async () => {
    await firefox.stop()
    await server.stop()
  })
  afterEach(() => expect(firefox.problems.splice(0)).toEqual([]))

  const open = (view: string) => firefox.open(`http://127.0.0.1:${server.http.port}/${view}`)
  const enter = "\uE007"

  it("lists the models of its server", async () => {
    await open("")
    expect(await firefox.value(`document.querySelector("table.models a")?.textContent`)).toBe("twice")
    expect(await firefox.value("document.title")).toBe("Models – Nereid")
  })

  it.each([
    ["twice", "21", `document.querySelector(".answer .figure")?.textContent === "42"`],
    ["count", "3", `document.querySelector(".answer")?.textContent.includes("3 responses")`],
  ])("tries %s", async (name, text, isAnswered) => {
    await open(`#/models/${name}/1`)
    await firefox.value(`(() => {
      const field = document.querySelector(".try input[type=number], .try input[inputmode]")
      field?.focus()
      field?.select()
      return document.title.startsWith(${JSON.stringify(name)}) && document.activeElement === field && field !== null
    })()`)
    await firefox.type(`${text}${enter}`)
    await firefox.value(isAnswered)
  })

  it("tries a sequence of requests, and ends it", async () => {
    await open("#/models/sums/1")
    await firefox.value(`(() => {
      const field = document.querySelector(".try .input-field input")
      field?.focus()
      field?.select()
      return field !== null && document.activeElement === field
    })()`)
    await firefox.type(`20${enter}`)
    await firefox.value(`document.querySelector(".sequence")?.textContent.includes("has had 1 request")`)
    await firefox.value(`(document.querySelector(".try button[type=submit]")?.click(), true)`)
    await firefox.value(`document.querySelector(".answer .figure")?.textContent === "40"`)
    await firefox.value(`(document.querySelector(".sequence button")?.click(), true)`)
    await firefox.value(`document.querySelector(".sequence")?.textContent.includes("had 2 requests, and has ended")`)
  })

  it("draws a picture for a model", async () => {
    await open("#/models/ink/1")
    const box = await firefox.value(`(() => {
      const pad = document.querySelector(".try canvas")
      pad?.scrollIntoView({ block: "center" })
      const { x, y, width } = pad?.getBoundingClientRect() ?? {}
      return width && [x, y, width].join(" ")
    })()`)
    const [x = 0, y = 0, width = 0] = String(box).split(" ").map(Number)
    await firefox.drag([x + width / 2, y + width / 4], [x + width / 2, y + (3 * width) / 4])
    await firefox.value(`(document.querySelector(".try button[type=submit]")?.click(), true)`)
    await firefox.value(`Number(document.querySelector(".answer .figure")?.textContent) > 5`)
  })

  it("shows live data", async () => {
    await open("#/live")
    await firefox.value(`document.querySelectorAll("figure canvas").length >= 5`)
    await firefox.value(`[...document.querySelectorAll("h2")].some(({ textContent }) => textContent === "Process")`)
    await firefox.value(`/resident [\\d.]+ MB/.test(document.body.textContent)`)
  })

  it("shows the log and the API", async () => {
    await open("#/log")
    await firefox.value(`document.querySelector("ol.log")`)
    await open("#/api")
    await firefox.value(`document.querySelector("details.operation")`)
  })
})
