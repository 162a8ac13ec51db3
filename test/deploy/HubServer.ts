/**
 * A server with the interface of Hugging Face, as no other is to be had: one model whose branch gets a commit with each
 * upload. Its files are large ones, whose contents are behind a redirect.
 */
import { createHash } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const sha256 = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex")

export class HubServer implements AsyncDisposable {
  static readonly model = "org/model"
  static readonly token = "hf_of_the_test"
  readonly #server: Server
  /** Files by their paths, at each commit. */
  readonly #commits = new Map<string, ReadonlyMap<string, Uint8Array>>()
  #head = ""

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  static async start(): Promise<HubServer> {
    const hub = new HubServer()
    hub.#server.listen(0, "127.0.0.1")
    await once(hub.#server, "listening")
    return hub
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  put(path: string, content: Uint8Array): void {
    const files = new Map([...(this.#commits.get(this.#head) ?? []), [path, content]])
    this.#head = sha256(Buffer.from(`${this.#head} ${path} ${sha256(content)}`)).slice(0, 40)
    this.#commits.set(this.#head, files)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close")
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  #answer({ url = "", headers }: IncomingMessage, response: ServerResponse): void {
    const json = (document: unknown, status = 200, more = {}) =>
      void response.writeHead(status, more).end(JSON.stringify(document))
    const path = decodeURIComponent(url.split("?")[0] ?? "")
    const [, stored, name = ""] = /^\/stored\/(\w+)\/(.*)$/.exec(path) ?? []
    if (stored !== undefined) return this.#contents(stored, name, headers.range, response)
    if (headers.authorization !== `Bearer ${HubServer.token}`) {
      return json({ error: "Invalid credentials in Authorization header" }, 401)
    }
    if (path === `/api/models/${HubServer.model}/revision/main`) return json({ sha: this.#head })
    const [, tree = "", folder = ""] = new RegExp(`^/api/models/${HubServer.model}/tree/(\\w+)/(.*)$`).exec(path) ?? []
    const found = [...(this.#commits.get(tree) ?? [])].filter(([file]) => file.startsWith(`${folder}/`))
    if (found.length > 0) return json(found.map(entry))
    const [, commit = "", file = ""] = new RegExp(`^/${HubServer.model}/resolve/(\\w+)/(.*)$`).exec(path) ?? []
    if (this.#commits.get(commit)?.has(file) !== true) return json({ error: "Entry not found" }, 404)
    const location = `http://${headers.host}/stored/${commit}/${encodeURIComponent(file)}`
    response.writeHead(302, { location }).end()
  }

  #contents(commit: string, file: string, range: string | undefined, response: ServerResponse): void {
    const content = this.#commits.get(commit)?.get(file)
    if (content === undefined) return void response.writeHead(404).end()
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(range ?? "") ?? []
    if (start === undefined) return void response.end(content)
    const part = content.subarray(Number(start), Number(end) + 1)
    response.writeHead(206, { "content-range": `bytes ${start}-${end}/${content.length}` }).end(part)
  }
}

const entry = ([path, content]: readonly [string, Uint8Array]) => ({
  type: "file",
  path,
  size: content.length,
  oid: "0".repeat(40),
  lfs: { oid: sha256(content), size: content.length },
})
