/**
 * The configurations of the guide on deployment, run by the proxies themselves, in front of two servers. Each proxy is
 * skipped where its program is not installed.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { freePort, root } from "../Program.ts"

const guide = readFileSync(join(root, "docs/guides/deployment.md"), "utf8")

/** The block of the guide that begins with the name of this file. */
const block = (file: string): string => {
  const [, text = ""] = new RegExp(`^\`\`\`\\w+\\n# ${RegExp.escape(file)}\\n([^]*?)^\`\`\``, "m").exec(guide) ?? []
  expect(text).not.toBe("")
  return text
}

class Size extends Model.Service<Size>()("size", {
  inputs: { DATA: Tensor.UINT8(-1) },
  outputs: { BYTES: Tensor.scalar("INT32"), FOR: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

/** Sends 1, and 2 once it is told to. */
class Two extends Model.Service<Two>()("two", {
  inputs: { GO: Tensor.scalar("BOOL") },
  outputs: { NUMBER: Tensor.scalar("INT32") },
}) {}

const gates: Array<() => void> = []

const models = Layer.merge(
  Model.each(Size, ({ DATA }, { parameters }) => ({
    BYTES: DATA.data.length,
    FOR: String(parameters["x-forwarded-for"] ?? ""),
  })),
  Model.stream(
    Two,
    async function* () {
      yield { NUMBER: 1 }
      await new Promise<void>((resolve) => void gates.push(resolve))
      yield { NUMBER: 2 }
    },
    { instances: 4 },
  ),
)

const start = () =>
  Server.start([Size, Two], models, {
    http: { host: "127.0.0.1", port: 0 },
    grpc: { host: "127.0.0.1", port: 0 },
    metrics: false,
    forwardHeaders: { http: "^x-forwarded-for$", grpc: "^x-forwarded-for$" },
  })

interface Proxy {
  readonly name: string
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

const proxies: ReadonlyArray<Proxy> = [
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

const isInstalled = ({ name }: Proxy): boolean => spawnSync(name, [name === "envoy" ? "--version" : "-v"]).status === 0

const certificates = authority()

describe.each(proxies)("$name", (proxy) => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-proxy-"))
  let servers: ReadonlyArray<Awaited<ReturnType<typeof start>>> = []
  let port = 0
  let process: ChildProcess | undefined
  const installed = isInstalled(proxy)
  const agent = new Agent({ ca: certificates.cert, keepAlive: true })

  /** With the addresses and files of this test. */
  const configuration = (): string => {
    const [one, two] = servers
    const addresses = new Map([
      ["nereid-1:8000", one?.http.port],
      ["nereid-1:8001", one?.grpc.port],
      ["nereid-2:8000", two?.http.port],
      ["nereid-2:8001", two?.grpc.port],
    ])
    return [...addresses]
      .reduce((text, [address, port]) => {
        const [host, number] = address.split(":")
        return text
          .replaceAll(
            new RegExp(`${address}(.*) port 8000`, "g"),
            `127.0.0.1:${port}$1 port ${addresses.get(`${host}:8000`)}`,
          )
          .replaceAll(address, `127.0.0.1:${port}`)
          .replaceAll(`address: ${host}, port_value: ${number}`, `address: 127.0.0.1, port_value: ${port}`)
      }, block(proxy.file))
      .replaceAll("/etc/nereid", folder)
      .replace(/(listen |bind :|port_value: )443/, `$1${port}`)
  }

  const call = (path: string, body?: string): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((resolve, reject) => {
      const method = body === undefined ? "GET" : "POST"
      const call = request({ host: "localhost", port, path, method, agent }, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => (text += chunk.toString()))
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }))
      })
      call.on("error", reject)
      call.end(body)
    })

  const infer = (size: number) => {
    const inputs = [{ name: "DATA", datatype: "UINT8", shape: [1, size], data: Array(size).fill(7) }]
    return call("/v2/models/size/infer", JSON.stringify({ inputs }))
  }

  const url = (protocol: "https" | "grpcs") => ({
    url: `${protocol}://localhost:${port}`,
    tls: { ca: certificates.cert },
  })

  const ready = async (): Promise<void> => {
    const { status } = await call("/v2/health/ready").catch(() => ({ status: 0 }))
    if (status === 200) return
    if (process?.exitCode !== null) throw new Error(`${proxy.name} ended with ${process?.exitCode}`)
    await new Promise((resolve) => setImmediate(resolve))
    return ready()
  }

  beforeAll(async () => {
    if (!installed) return
    servers = await Promise.all([start(), start()])
    port = await freePort()
    const { cert, key } = certificates.issue("localhost")
    mkdirSync(folder, { recursive: true })
    for (const [name, text] of [
      ["tls.crt", cert],
      ["tls.key", key],
      ["tls.pem", cert + key],
    ] as const) {
      writeFileSync(join(folder, name), text)
    }
    const file = join(folder, proxy.file)
    writeFileSync(file, proxy.wrap(configuration(), folder))
    process = spawn(proxy.name, proxy.args(file, folder), { stdio: ["ignore", "inherit", "inherit"] })
    await ready()
  })

  afterAll(async () => {
    agent.destroy()
    if (process?.exitCode === null) {
      const ended = once(process, "exit")
      process.kill("SIGTERM")
      await ended
    }
    await Promise.all(servers.map((server) => server.stop()))
    rmSync(folder, { recursive: true })
  })

  it.skipIf(!installed)("terminates TLS, and forwards the address of the client, over HTTP and gRPC", async () => {
    const { status, text } = await infer(3)
    expect({ status, ...JSON.parse(text) }).toMatchObject({
      status: 200,
      outputs: [
        { name: "BYTES", data: [3] },
        { name: "FOR", data: [expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/)] },
      ],
    })
    await using size = await Client.connect(Size, url("grpcs"))
    const { BYTES, FOR } = await size.infer({ DATA: Tensor.make("UINT8", [5], new Uint8Array(5)) })
    expect(BYTES).toBe(5)
    expect(FOR).toMatch(/^\d+\.\d+\.\d+\.\d+$/)
  })

  it.skipIf(!installed)("passes a body of 8 MiB, over HTTP and gRPC", async () => {
    const DATA = Tensor.make("UINT8", [8 * 2 ** 20], new Uint8Array(8 * 2 ** 20))
    for (const protocol of ["https", "grpcs"] as const) {
      await using size = await Client.connect(Size, url(protocol))
      expect(await size.infer({ DATA })).toMatchObject({ BYTES: 8 * 2 ** 20 })
    }
  })

  it.skipIf(!installed)("passes each response of a stream at once, over HTTP and gRPC", async () => {
    for (const protocol of ["https", "grpcs"] as const) {
      await using two = await Client.connect(Two, url(protocol))
      const numbers: Array<number> = []
      for await (const { NUMBER } of two.stream({ GO: true })) {
        numbers.push(NUMBER)
        // The model sends the second response only after the first one has come through.
        if (NUMBER === 1) gates.shift()?.()
      }
      expect(numbers).toEqual([1, 2])
    }
  })

  it.skipIf(!installed)("loses no request when a server stops", async () => {
    let isStopped = false
    const callers = Array.from({ length: 4 }, async () => {
      const statuses: Array<number> = []
      for (let after = 0; after < 20; after += isStopped ? 1 : 0) statuses.push((await infer(10)).status)
      return statuses
    })
    await using size = await Client.connect(Size, url("grpcs"))
    const overGrpc = (async () => {
      for (let after = 0; after < 20; after += isStopped ? 1 : 0) {
        await size.infer({ DATA: Tensor.make("UINT8", [1], new Uint8Array(1)) })
      }
    })()
    await servers[0]?.stop()
    isStopped = true
    const [statuses] = await Promise.all([Promise.all(callers), overGrpc])
    expect(new Set(statuses.flat())).toEqual(new Set([200]))
  })
})
