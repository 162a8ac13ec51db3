/**
 * The page in a real browser, for tests: finds Chromium, starts it and a server with the page, and opens tabs. A test
 * fails if one of its tabs logs an error, violates the Content-Security-Policy, or sends a request to another origin.
 */
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest"
import { browserProgram } from "./BrowserProgram.fixture.ts"

/** A server whose HTTP port has the page at `/`, such as that of `Server.start` with `dashboard: true`. */
export interface PageServer {
  /** Whether the port has TLS. Tests accept any certificate. */
  readonly hasTls?: boolean
  readonly http: { readonly port: number }
  readonly stop: () => Promise<unknown>
}

export interface PageOptions extends BrowserContextOptions {
  /** Console messages that the test provokes. */
  readonly expected?: RegExp
}

export interface PageTests {
  /** Opens a view in a tab of its own, such as `#/models/digits/1`. The tab closes after the test. */
  readonly open: (view?: string, options?: PageOptions) => Promise<Page>
  /** `http://127.0.0.1:1234`, or with `https`. */
  readonly origin: () => string
}

/** The names that Linux distributions and Google give to Chromium's program. */
const executable = browserProgram("CHROMIUM", [
  "chromium",
  "chromium-browser",
  "google-chrome-stable",
  "google-chrome",
  "chrome",
])

/** Declares tests in a browser; without a browser, skips them with a line that says so. */
export const inBrowser = (title: string, start: () => Promise<PageServer>, tests: (page: PageTests) => void): void => {
  if (executable === undefined) {
    console.log(`Skipped "${title}": there is no Chromium on the PATH, nor in the environment variable CHROMIUM`)
    describe.skip(title, () => tests({ open: never, origin: never }))
    return
  }
  describe(title, () => {
    let server: PageServer | undefined
    let browser: Browser | undefined
    const problems: Array<string> = []

    beforeAll(async () => {
      server = await start()
      // A container's user is often root, for whom Chromium's sandbox does not start.
      browser = await chromium.launch({ executablePath: executable, args: ["--no-sandbox", "--disable-gpu"] })
    })
    afterAll(async () => {
      await browser?.close()
      await server?.stop()
    })
    afterEach(async () => {
      for (const context of browser?.contexts() ?? []) await context.close()
      expect(problems.splice(0)).toEqual([])
    })

    const origin = () => `${server?.hasTls === true ? "https" : "http"}://127.0.0.1:${server?.http.port}`
    const open: PageTests["open"] = async (view = "", { expected, ...options } = {}) => {
      if (browser === undefined) throw new Error("the browser has not started")
      const context = await browser.newContext({ ignoreHTTPSErrors: server?.hasTls === true, ...options })
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      watch(page, origin(), (problem) => {
        if (expected?.test(problem) !== true) problems.push(problem)
      })
      await page.goto(`${origin()}/${view}`)
      return page
    }
    tests({ open, origin })
  })
}

const never = (): never => {
  throw new Error("there is no browser")
}

/** Reports what a page must not do. */
const watch = (page: Page, origin: string, report: (problem: string) => void): void => {
  page.on("pageerror", (error) => report(`uncaught: ${error.stack ?? error.message}`))
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return
    // The browser logs each response with an error's status. Those of the protocol are answers.
    const isAnswer = message.text().startsWith("Failed to load resource: the server responded with a status")
    if (isAnswer && new URL(message.location().url).pathname.startsWith("/v2/")) return
    report(`${message.type()}: ${message.text()}`)
  })
  page.on("request", (request) => {
    const url = new URL(request.url())
    if (/^https?:$/.test(url.protocol) && url.origin !== origin) report(`request to another origin: ${request.url()}`)
  })
}
