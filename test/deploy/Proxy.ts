/** A proxy with its configuration of deploy/proxies, as a process in front of servers of a test. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { authority } from "../fixtures/certificate.ts"
import { freePort, root } from "../Program.ts"
import type { ProxiedServer } from "./ProxiedModels.ts"

export interface Proxy {
  readonly name: "nginx" | "haproxy" | "envoy"
  readonly file: string
  /** The complete configuration, from that of the guide. */
  readonly wrap: (configuration: string, folder: string) => string
  readonly args: (file: string, folder: string) => ReadonlyArray<string>
}

const nginx = (configuration: string, folder: string): string => {
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`)
  return `daemon off; pid ${folder}/pid; error_log stderr; events {}
http { access_log off; ${paths.join(" ")}\n${configuration} }`
}

export const proxies: ReadonlyArray<Proxy> = [
  {
    name: "nginx",
    file: "nginx.conf",
    wrap: nginx,
    args: (file, folder) => ["-p", folder, "-c", file, "-e", "stderr"],
  },
  { name: "haproxy", file: "haproxy.cfg", wrap: (configuration) => configuration, args: (file) => ["-f", file, "-db"] },
  {
    name: "envoy",
    file: "envoy.yaml",
    wrap: (configuration) => configuration,
    args: (file) => ["-c", file, "--use-dynamic-base-id", "--log-level", "error", "--concurrency", "1"],
  },
]

export const read = (file: string) => readFileSync(join(root, "deploy/proxies", file), "utf8")

export const isInstalled = ({ name }: Proxy): boolean =>
  spawnSync(name, [name === "envoy" ? "--version" : "-v"]).status === 0

/** With the addresses of the servers. */
const addressed = (configuration: string, servers: ReadonlyArray<ProxiedServer>): string => {
  const addresses = new Map(
    servers.flatMap(({ http, grpc }, index) => [
      [`nereid-${index + 1}:8000`, http.port],
      [`nereid-${index + 1}:8001`, grpc.port],
    ]),
  )
  return [...addresses].reduce((text, [address, port]) => {
    const [host, number] = address.split(":")
    return text
      .replaceAll(
        new RegExp(`${address}(.*) port 8000`, "g"),
        `127.0.0.1:${port}$1 port ${addresses.get(`${host}:8000`)}`,
      )
      .replaceAll(address, `127.0.0.1:${port}`)
      .replaceAll(`address: ${host}, port_value: ${number}`, `address: 127.0.0.1, port_value: ${port}`)
  }, configuration)
}

export interface ProxyOptions {
  /** Files beside the certificate, by their names. */
  readonly files?: { readonly [name: string]: string }
  /** Makes another configuration of that of the guide. */
  readonly change?: (configuration: string) => string
  /** Milliseconds in which a server must answer through the proxy. Default 20 seconds. */
  readonly patience?: number
}

export class RunningProxy implements AsyncDisposable {
  readonly #name: string
  readonly #folder: string
  readonly #port: number
  readonly #process: ChildProcess
  readonly #authority: string
  readonly #agent: Agent

  private constructor(name: string, folder: string, port: number, process: ChildProcess, authority: string) {
    this.#name = name
    this.#folder = folder
    this.#port = port
    this.#process = process
    this.#authority = authority
    this.#agent = new Agent({ ca: authority, keepAlive: true })
  }

  static async start(
    { name, file, wrap, args }: Proxy,
    servers: ReadonlyArray<ProxiedServer>,
    { files = {}, change = (configuration) => configuration, patience = 20_000 }: ProxyOptions = {},
  ): Promise<RunningProxy> {
    const folder = mkdtempSync(join(tmpdir(), "nereid-proxy-"))
    const certificates = authority()
    const { cert, key } = certificates.issue("localhost")
    const all = { ...files, "tls.crt": cert, "tls.key": key, "tls.pem": cert + key }
    for (const [path, text] of Object.entries(all)) writeFileSync(join(folder, path), text)
    const port = await freePort()
    const configuration = addressed(change(read(file)), servers)
      .replaceAll("/etc/nereid", folder)
      .replace(/(listen |bind :|port_value: )443/, `$1${port}`)
    const path = join(folder, file)
    writeFileSync(path, wrap(configuration, folder))
    const process = spawn(name, args(path, folder), { stdio: ["ignore", "inherit", "inherit"] })
    const proxy = new RunningProxy(name, folder, port, process, certificates.cert)
    try {
      await proxy.#ready(patience)
    } catch (error) {
      await proxy[Symbol.asyncDispose]()
      throw error
    }
    return proxy
  }

  /** Waits until a server answers through it. */
  async #ready(patience: number): Promise<void> {
    for (const deadline = performance.now() + patience; ;) {
      const { status, text } = await this.call("/v2/health/ready").catch((error: unknown) => ({
        status: 0,
        text: String(error),
      }))
      if (status === 200) return
      if (this.#process.exitCode !== null) throw new Error(`${this.#name} ended with ${this.#process.exitCode}`)
      if (performance.now() > deadline) throw new Error(`${this.#name} answers ${status} ${text}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  call(
    path: string,
    body?: string | Uint8Array,
    headers = {},
  ): Promise<{ readonly status: number; readonly text: string }> {
    return new Promise((resolve, reject) => {
      const method = body === undefined ? "GET" : "POST"
      const address = { host: "localhost", port: this.#port, path, method, agent: this.#agent, headers }
      const call = request(address, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => (text += chunk.toString()))
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }))
      })
      call.on("error", reject)
      call.end(body)
    })
  }

  /** Calls the model `size` over HTTP. */
  infer(size: number, headers = {}) {
    const inputs = [{ name: "DATA", datatype: "UINT8", shape: [1, size], data: Array(size).fill(7) }]
    return this.call("/v2/models/size/infer", JSON.stringify({ inputs }), headers)
  }

  /** The number of the server that answers a call over HTTP. */
  async server(headers = {}): Promise<number> {
    const { status, text } = await this.infer(1, headers)
    if (status !== 200) throw new Error(`${status} ${text}`)
    return JSON.parse(text).outputs.find(({ name }: { name: string }) => name === "SERVER").data[0]
  }

  /** Options of a client. */
  url(protocol: "https" | "grpcs") {
    return { url: `${protocol}://localhost:${this.#port}`, tls: { ca: this.#authority } }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy()
    if (this.#process.exitCode === null) {
      const ended = once(this.#process, "exit")
      this.#process.kill("SIGTERM")
      await ended
    }
    rmSync(this.#folder, { recursive: true })
  }
}
