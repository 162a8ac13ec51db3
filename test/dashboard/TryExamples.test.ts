/** The form of the page on the models of the examples: digits drawn and photographed, and a stream of words. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { Digits, DigitsLive } from "../../examples/digits/server.ts"
import { PhotographedDigit, PhotographedDigitLive } from "../../examples/image/server.ts"
import { Words, WordsLive } from "../../examples/streaming/server.ts"
import { axeFaults } from "./Axe.fixture.ts"
import { inBrowser } from "./Page.fixture.ts"

const start = () =>
  Server.start([Digits, PhotographedDigit, Words], Layer.mergeAll(DigitsLive, PhotographedDigitLive, WordsLive), {
    http: { host: "127.0.0.1", port: 0 },
    grpc: false,
    metrics: false,
    dashboard: true,
  })

type Stroke = ReadonlyArray<readonly [x: number, y: number]>

/** Digits as strokes, in shares of the pad. */
const strokes: Readonly<Record<string, ReadonlyArray<Stroke>>> = {
  "0": [arc(0.5, 0.5, 0.18, 0.28, 0, 360)],
  "1": [line([0.5, 0.2], [0.5, 0.8])],
  "2": [[...arc(0.5, 0.35, 0.17, 0.15, 200, 380), ...line([0.62, 0.5], [0.32, 0.8]), ...line([0.32, 0.8], [0.7, 0.8])]],
  "3": [[...arc(0.48, 0.35, 0.16, 0.15, 220, 450), ...arc(0.48, 0.65, 0.18, 0.16, 270, 500)]],
  "4": [[...line([0.4, 0.2], [0.3, 0.55]), ...line([0.3, 0.55], [0.7, 0.55])], line([0.62, 0.22], [0.6, 0.85])],
  "7": [[...line([0.3, 0.22], [0.7, 0.22]), ...line([0.7, 0.22], [0.45, 0.8])]],
}

function line([fromX, fromY]: readonly [number, number], [toX, toY]: readonly [number, number]): Stroke {
  return Array.from({ length: 12 }, (_, step) => [
    fromX + ((toX - fromX) * step) / 11,
    fromY + ((toY - fromY) * step) / 11,
  ])
}

/** Angles are clockwise, from the right. */
function arc(x: number, y: number, wide: number, tall: number, from: number, to: number): Stroke {
  return Array.from({ length: 30 }, (_, step) => {
    const angle = ((from + ((to - from) * step) / 29) * Math.PI) / 180
    return [x + wide * Math.cos(angle), y + tall * Math.sin(angle)]
  })
}

const draw = async (page: Page, digit: string): Promise<void> => {
  const pad = page.getByLabel(/^Drawing of image/)
  await pad.scrollIntoViewIfNeeded()
  const box = await pad.boundingBox()
  if (box === null) throw new Error("the pad is not visible")
  for (const stroke of strokes[digit] ?? []) {
    for (const [index, [x, y]] of stroke.entries()) {
      await page.mouse.move(box.x + x * box.width, box.y + y * box.height)
      if (index === 0) await page.mouse.down()
    }
    await page.mouse.up()
  }
}

/** The time behind a word. */
const time = /[\d.,]+ (µs|ms|s)$/

/** Code of a transfer with one file. */
const transferOf = (name: string, type: string, bytes: Buffer): string => `(() => {
  const bytes = Uint8Array.from(atob("${bytes.toString("base64")}"), (character) => character.charCodeAt(0))
  const transfer = new DataTransfer()
  transfer.items.add(new File([bytes], ${JSON.stringify(name)}, { type: ${JSON.stringify(type)} }))
  return transfer
})()`

const drop = async (page: Page, zone: string, name: string, type: string, bytes: Buffer): Promise<void> => {
  const dataTransfer = await page.evaluateHandle(transferOf(name, type, bytes))
  await page.getByRole("group", { name: zone }).dispatchEvent("drop", { dataTransfer })
}

/** Pastes a file where the focus is. */
const paste = async (page: Page, name: string, type: string, bytes: Buffer): Promise<void> => {
  const options = `{ clipboardData: ${transferOf(name, type, bytes)}, bubbles: true, cancelable: true }`
  await page.evaluate(`document.activeElement.dispatchEvent(new ClipboardEvent("paste", ${options}))`)
}

const pictures = join(import.meta.dirname, "../../examples/digits/pictures")
const photographs = join(import.meta.dirname, "../../examples/image/photographs")

inBrowser("the form on the examples", start, ({ open }) => {
  describe("digits", () => {
    it.each(Object.keys(strokes))("recognises a %s that is drawn with the mouse", async (digit) => {
      const page = await open("#/models/digits/1")
      await draw(page, digit)
      await page.getByRole("button", { name: "Run" }).click()
      const first = page
        .getByRole("table", { name: /logits/ })
        .getByRole("rowheader")
        .first()
      expect(await first.textContent()).toBe(digit)
      expect(await page.getByText("Latency", { exact: true }).isVisible()).toBe(true)
    })

    it("are sent without a drawing as well: zeros, by keyboard alone", async () => {
      const page = await open("#/models/digits/1")
      await page.getByLabel("Source of image").focus()
      await page.keyboard.type("Zeros")
      await page.getByRole("button", { name: "Run" }).focus()
      await page.keyboard.press("Enter")
      const table = page.getByRole("table", { name: /logits/ })
      await table.waitFor()
      expect(await table.getByRole("row").count()).toBe(10)
    })

    it("are read from a picture that is dropped, and from one that is pasted", async () => {
      const page = await open("#/models/digits/1")
      const first = page
        .getByRole("table", { name: /logits/ })
        .getByRole("rowheader")
        .first()
      await drop(page, "image FP32[1, 28, 28]", "5.png", "image/png", readFileSync(join(pictures, "5-9013.png")))
      await page.getByText("28 × 28, as the model gets it").waitFor()
      await page.getByRole("button", { name: "Run" }).click()
      expect(await first.textContent()).toBe("5")
      await page.getByRole("group", { name: "Picture for image" }).focus()
      await paste(page, "8.png", "image/png", readFileSync(join(pictures, "8-9020.png")))
      const answer = async () => {
        await page.getByRole("button", { name: "Run" }).click()
        return first.textContent()
      }
      await expect.poll(answer, { timeout: 10_000 }).toBe("8")
    })

    it.each(["light", "dark"] as const)("have no fault that axe finds, in %s colours", async (colorScheme) => {
      const page = await open("#/models/digits/1", { colorScheme })
      await page.getByText("More", { exact: true }).click()
      await page.getByText("Repeat it").click()
      await page.getByRole("button", { name: "Start" }).click()
      await page.getByText("100 done").waitFor()
      await page.getByRole("button", { name: "Python" }).click()
      await draw(page, "7")
      await page.getByRole("button", { name: "Run" }).click()
      await page
        .getByText("Histogram")
        .or(page.getByRole("table", { name: /logits/ }))
        .first()
        .waitFor()
      expect(await axeFaults(page)).toEqual([])
    })

    it("accept a touch, on a phone's width", async () => {
      const page = await open("#/models/digits/1", {
        viewport: { width: 360, height: 740 },
        hasTouch: true,
        isMobile: true,
      })
      await draw(page, "1")
      await page.getByRole("button", { name: "Run" }).click()
      await page.getByRole("table", { name: /logits/ }).waitFor()
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true)
    })
  })

  describe("photographed_digit", () => {
    it.each(["3-9007.jpg", "7-9000.jpg"])("recognises %s, which is dropped", async (name) => {
      const page = await open("#/models/photographed_digit/1")
      await drop(page, "File for IMAGE", name, "image/jpeg", readFileSync(join(photographs, name)))
      await page.getByAltText(`Picture ${name}`).waitFor()
      await page.getByRole("button", { name: "Run" }).click()
      const output = page.getByRole("region", { name: "Output DIGIT" })
      expect(await output.locator(".figure").textContent()).toBe(name[0])
    })

    it("takes a chosen file, and says why it cannot read another", async () => {
      const page = await open("#/models/photographed_digit/1")
      const file = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no picture") }
      await page.getByLabel("Choose a file").setInputFiles(file)
      await page.getByRole("button", { name: "Run" }).click()
      const alert = page.getByRole("alert").filter({ hasText: "The request failed." })
      expect(await alert.textContent()).toContain("(InvalidRequest, status 400)")
      expect(await alert.textContent()).toContain("expected the bytes of a JPEG or PNG file, got 10 bytes")
    })
  })

  describe("words", () => {
    it("arrive one by one, each with its time", async () => {
      const page = await open("#/models/words/1")
      await page.getByLabel("PROMPT").fill("The keeper")
      await page.getByLabel("Send SEED").check()
      await page.getByLabel(/^SEED/).fill("5")
      await page.getByLabel("Send MAX_WORDS").check()
      await page.getByLabel(/^MAX_WORDS/).fill("3")
      await page.getByRole("button", { name: "Run" }).click()
      await page.getByText("3 responses", { exact: true }).waitFor()
      const words = page.getByRole("log", { name: "Responses" }).getByRole("listitem")
      const texts = await words.allTextContents()
      expect(texts.slice(0, 2).map((text) => text.replace(time, ""))).toEqual(["heard", "the"])
      expect(texts.every((text) => time.test(text))).toBe(true)
    })

    it("are refused with tag, status and reason", async () => {
      const page = await open("#/models/words/1")
      await page.getByLabel("Send MAX_WORDS").check()
      await page.getByLabel(/^MAX_WORDS/).fill("-1")
      await page.getByRole("button", { name: "Run" }).click()
      const alert = page.getByRole("alert").filter({ hasText: "The request failed." })
      expect(await alert.textContent()).toContain("(InvalidRequest, status 400)")
      expect(await alert.textContent()).toContain("Expected a value between 1 and 1000")
    })
  })
})
