/**
 * Takes the pictures of the dashboard in README and guides, in Chromium: node docs/pictures/take.ts. Serves the
 * examples, under some load.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { chromium, type Page } from "playwright-core"
import sharp from "sharp"
import { command, nereid, Program } from "../../test/Program.ts"

const width = 1200

/** Seconds of load before the pictures. */
const seconds = 45

const ports = ["--http-address=127.0.0.1", "--http-port=0", "--grpc-port=0", "--allow-metrics=false"]
await using server = nereid("serve", "examples/models.ts", ...ports)
const [, http = ""] = await server.match(/HTTPService at [^:]+:(\d+)/)
const [, grpc = ""] = await server.match(/GRPCInferenceService at [^:]+:(\d+)/)
const origin = `http://127.0.0.1:${http}`

const text = { name: "TEXT", datatype: "BYTES", shape: [1, 1], data: ["what a wonderful film"] }
const sentiment = JSON.stringify({ inputs: [text] })
const over = new AbortController()
/** Callers of the sentiment pipeline. */
const callers = Array.from({ length: 6 }, async (_, caller) => {
  while (!over.signal.aborted) {
    const response = await fetch(`${origin}/v2/models/sentiment/infer`, { method: "POST", body: sentiment })
    await response.text()
    await new Promise((resolve) => setTimeout(resolve, 5 * caller))
  }
})
const bench = (...args: ReadonlyArray<string>) =>
  new Program([command, "bench", `--url=grpc://127.0.0.1:${grpc}`, ...args])
await using _digits = bench("--model=digits", "--concurrency-range=12", `--measurement-interval=${seconds * 1000}`)

const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
})

const take = async (
  name: string,
  view: string,
  height: number,
  prepare: (page: Page) => Promise<unknown>,
): Promise<void> => {
  const page = await browser.newPage({ viewport: { width, height } })
  await page.goto(`${origin}/${view}`)
  await page.locator("h1").waitFor()
  await prepare(page)
  // Few colours: the pictures are part of the repository.
  const png = await sharp(await page.screenshot())
    .png({ palette: true, colours: 96, compressionLevel: 9 })
    .toBuffer()
  writeFileSync(join(import.meta.dirname, `${name}.png`), png)
  console.log(`docs/pictures/${name}.png: ${png.length} bytes`)
  await page.close()
}

try {
  await take("models", "#/models", 600, (page) => page.getByRole("link", { name: "words" }).waitFor())
  await take("try", "#/models/digits/1", 1300, async (page) => {
    const canvas = page.locator("canvas").first()
    const box = await canvas.boundingBox()
    if (box === null) throw new Error("There is nothing to draw on")
    const at = (x: number, y: number) => [box.x + x * box.width, box.y + y * box.height] as const
    // A seven.
    await page.mouse.move(...at(0.28, 0.25))
    await page.mouse.down()
    await page.mouse.move(...at(0.72, 0.25), { steps: 12 })
    await page.mouse.move(...at(0.45, 0.8), { steps: 12 })
    await page.mouse.up()
    await page.getByRole("button", { name: "Run", exact: true }).click()
    await page.getByRole("heading", { name: "logits" }).or(page.getByText("in the server")).first().waitFor()
  })
  await take("live", "#/live?seconds=30", 860, () => new Promise((resolve) => setTimeout(resolve, seconds * 1000)))
} finally {
  over.abort()
  await Promise.all(callers)
  await browser.close()
}
