/**
 * A Firefox without a window, by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/), which Firefox speaks on a
 * WebSocket. playwright-core only drives a Firefox of its own.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Program } from "../Program.ts"
import { browserProgram } from "./BrowserProgram.fixture.ts"

/** Path of Firefox: the environment variable FIREFOX, or the first of the usual names on the PATH. */
export const program = browserProgram("FIREFOX", ["firefox-esr", "firefox"])

/** No first-run pages, and no requests to Mozilla. */
const preferences = `
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
`

interface Reply {
  readonly id?: number
  readonly type: "success" | "error" | "event"
  readonly message?: string
  readonly result?: Readonly<Record<string, unknown>>
  readonly params?: { readonly level?: string; readonly text?: string }
}

/** One tab of a browser. */
export class Firefox {
  readonly #process: Program
  readonly #socket: WebSocket
  readonly #profile: string
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #calls = 0
  #context = ""
  /** Errors of the page and of its scripts, and violations of its Content-Security-Policy. */
  readonly problems: Array<string> = []

  private constructor(process: Program, socket: WebSocket, profile: string) {
    this.#process = process
    this.#socket = socket
    this.#profile = profile
    socket.addEventListener("message", ({ data }) => {
      const reply: Reply = JSON.parse(String(data))
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply)
      else if (reply.params?.level === "error") this.problems.push(reply.params.text ?? "an error without a text")
    })
  }

  static async start(file: string): Promise<Firefox> {
    const profile = mkdtempSync(join(tmpdir(), "nereid-firefox-"))
    writeFileSync(join(profile, "user.js"), preferences)
    const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"]
    const process = new Program(args, { HOME: profile }, profile, file)
    const [, address = ""] = await process.match(/WebDriver BiDi listening on (ws:\S+)/)
    const socket = new WebSocket(`${address}/session`)
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve)
      socket.addEventListener("error", () => reject(new Error(`no connection to ${address}`)))
    })
    const firefox = new Firefox(process, socket, profile)
    await firefox.#call("session.new", { capabilities: {} })
    await firefox.#call("session.subscribe", { events: ["log.entryAdded"] })
    const { context } = await firefox.#call("browsingContext.create", { type: "tab" })
    firefox.#context = String(context)
    return firefox
  }

  async open(url: string): Promise<void> {
    await this.#call("browsingContext.navigate", { context: this.#context, url, wait: "complete" })
  }

  /** The value of an expression in the page, once it is not false, null, empty or 0. */
  async value(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.#call("script.evaluate", {
      expression: `(async () => {
        for (;;) {
          const value = (() => ${expression})()
          if (value) return value
          await new Promise(requestAnimationFrame)
        }
      })()`,
      target: { context: this.#context },
      awaitPromise: true,
    })
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`)
    return typeof result === "object" && result !== null && "value" in result ? result.value : undefined
  }

  /** Writes into the focused field, or presses keys such as Enter, `\uE007`. */
  async type(text: string): Promise<void> {
    const actions = [...text].flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ])
    await this.#call("input.performActions", {
      context: this.#context,
      actions: [{ type: "key", id: "keyboard", actions }],
    })
  }

  /** Drags the mouse between points of the viewport. */
  async drag(...points: ReadonlyArray<readonly [x: number, y: number]>): Promise<void> {
    const [first, ...others] = points.map(([x, y]) => ({
      type: "pointerMove",
      x: Math.round(x),
      y: Math.round(y),
      duration: 50,
    }))
    const actions = [first, { type: "pointerDown", button: 0 }, ...others, { type: "pointerUp", button: 0 }]
    await this.#call("input.performActions", {
      context: this.#context,
      actions: [{ type: "pointer", id: "mouse", actions }],
    })
  }

  async #call(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    this.#calls += 1
    const id = this.#calls
    const replied = new Promise<Reply>((resolve) => this.#waiting.set(id, resolve))
    this.#socket.send(JSON.stringify({ id, method, params }))
    const { type, message, result = {} } = await replied
    this.#waiting.delete(id)
    if (type === "error") throw new Error(`${method}: ${message}`)
    return result
  }

  async stop(): Promise<void> {
    this.#socket.close()
    await this.#process[Symbol.asyncDispose]()
    rmSync(this.#profile, { recursive: true, force: true })
  }
}
