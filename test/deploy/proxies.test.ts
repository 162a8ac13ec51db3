/**
 * The configurations of deploy/proxies, which the guide on deployment shows, run by the proxies themselves, in front of
 * three servers. Each proxy is skipped where its program is not installed.
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

const read = (file: string) => readFileSync(join(root, "deploy/proxies", file), "utf8")

const guide = readFileSync(join(root, "docs/guides/deployment.md"), "utf8")

it.each(["nginx.conf", "haproxy.cfg", "envoy.yaml"])("the guide shows %s", (file) => {
  const [block = ""] = new RegExp(`^# ${RegExp.escape(file)}\\n([^]*?)(?=^\`\`\`)`, "m").exec(guide) ?? []
  expect(block).toBe(read(file))
})

class Size extends Model.Service<Size>()("size", {
  inputs: { DATA: Tensor.UINT8(-1) },
  outputs: { BYTES: Tensor.scalar("INT32"), FOR: Tensor.utf8(), SERVER: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

/** Sends 1, and 2 once it is told to. */
class Two extends Model.Service<Two>()("two", {
  inputs: { GO: Tensor.scalar("BOOL") },
  outputs: { NUMBER: Tensor.scalar("INT32") },
}) {}

/** Sends 1, 2 and 3, in 300 milliseconds. */
class Three extends Model.Service<Three>()("three", {
  inputs: { GO: Tensor.scalar("BOOL") },
  outputs: { NUMBER: Tensor.scalar("INT32") },
}) {}

const gates: Array<() => void> = []

const models = (server: number) =>
  Layer.mergeAll(
    Model.each(Size, ({ DATA }, { parameters }) => ({
      BYTES: DATA.data.length,
      FOR: String(parameters["x-forwarded-for"] ?? ""),
      SERVER: server,
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
    Model.stream(
      Three,
      async function* () {
        for (const NUMBER of [1, 2, 3]) {
          yield { NUMBER }
          await pause(100)
        }
      },
      { instances: 8 },
    ),
  )

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Ports of a server that takes the place of another one. */
interface Place {
  readonly http: number
  readonly grpc: number
}

const start = (server: number, { http, grpc }: Place = { http: 0, grpc: 0 }) =>
  Server.start([Size, Two, Three], models(server), {
    http: { host: "127.0.0.1", port: http },
    grpc: { host: "127.0.0.1", port: grpc },
    metrics: false,
    // Longer than the interval of the health checks.
    drainDelay: "3 seconds",
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
  let servers: Array<Awaited<ReturnType<typeof start>>> = []
  let port = 0
  let process: ChildProcess | undefined
  const installed = isInstalled(proxy)
  const agent = new Agent({ ca: certificates.cert, keepAlive: true })

  /** With the addresses and files of this test. */
  const configuration = (): string => {
    const addresses = new Map(
      servers.flatMap(({ http, grpc }, index) => [
        [`nereid-${index + 1}:8000`, http.port],
        [`nereid-${index + 1}:8001`, grpc.port],
      ]),
    )
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
      }, read(proxy.file))
      .replaceAll("/etc/nereid", folder)
      .replace(/(listen |bind :|port_value: )443/, `$1${port}`)
  }

  const call = (
    path: string,
    body?: string | Uint8Array,
    headers = {},
  ): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((resolve, reject) => {
      const method = body === undefined ? "GET" : "POST"
      const call = request({ host: "localhost", port, path, method, agent, headers }, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => (text += chunk.toString()))
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }))
      })
      call.on("error", reject)
      call.end(body)
    })

  const infer = (size: number, headers = {}) => {
    const inputs = [{ name: "DATA", datatype: "UINT8", shape: [1, size], data: Array(size).fill(7) }]
    return call("/v2/models/size/infer", JSON.stringify({ inputs }), headers)
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
    servers = await Promise.all([start(1), start(2), start(3)])
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
        { name: "SERVER" },
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

  it.skipIf(!installed)("sends the requests of a sequence to one server, over HTTP and gRPC", async () => {
    const used = new Map<string, Set<unknown>>()
    const note = (protocol: string, sequence: number, server: unknown) => {
      const key = `${protocol} ${sequence}`
      used.set(key, (used.get(key) ?? new Set()).add(server))
    }
    const [empty] = [Tensor.make("UINT8", [1], new Uint8Array(1))]
    for (let sequence = 0; sequence < 20; sequence++) {
      const headers = { "x-sequence-id": `${sequence}` }
      await using size = await Client.connect(Size, { ...url("grpcs"), headers })
      for (let request = 0; request < 5; request++) {
        const { outputs } = JSON.parse((await infer(1, headers)).text)
        note("http", sequence, outputs.find(({ name }: { name: string }) => name === "SERVER").data[0])
        note("grpc", sequence, (await size.infer({ DATA: empty })).SERVER)
      }
    }
    expect([...used.values()].filter((servers) => servers.size !== 1)).toEqual([])
    expect(new Set([...used.values()].flatMap((servers) => [...servers])).size).toBe(3)
  })

  it.skipIf(!installed)(
    "loses no request while all servers restart",
    async () => {
      const over = new AbortController()
      const counts = new Map<string, number>()
      const failures = new Map<string, number>()
      const seen = new Set<number>()
      const repeat = async (protocol: string, run: () => Promise<unknown>) => {
        while (!over.signal.aborted) {
          await run().then(
            () => counts.set(protocol, (counts.get(protocol) ?? 0) + 1),
            (error: unknown) => {
              const failure = `${protocol}: ${String(error)}`
              failures.set(failure, (failures.get(failure) ?? 0) + 1)
            },
          )
          await pause(5)
        }
      }
      const tensor = (bytes: number) => Tensor.make("UINT8", [bytes], new Uint8Array(bytes))
      await using size = await Client.connect(Size, url("grpcs"))
      await using three = await Client.connect(Three, url("grpcs"))
      await using sizeOverHttp = await Client.connect(Size, url("https"))
      await using threeOverHttp = await Client.connect(Three, url("https"))
      const numbersOf = async (client: typeof three) => {
        const numbers: Array<number> = []
        for await (const { NUMBER } of client.stream({ GO: true })) numbers.push(NUMBER)
        expect(numbers).toEqual([1, 2, 3])
      }
      const traffic = [
        repeat("HTTP", async () => {
          const { status, text } = await infer(10)
          if (status !== 200) throw new Error(`${status} ${text}`)
          seen.add(JSON.parse(text).outputs.find(({ name }: { name: string }) => name === "SERVER").data[0])
        }),
        // Several at a time: a call that a proxy sends just before it reads a GOAWAY must not be lost.
        ...Array.from({ length: 4 }, () =>
          repeat("gRPC", async () => expect((await size.infer({ DATA: tensor(10) })).BYTES).toBe(10)),
        ),
        repeat("large tensors over HTTP", async () =>
          expect((await sizeOverHttp.infer({ DATA: tensor(2 ** 20) })).BYTES).toBe(2 ** 20),
        ),
        repeat("large tensors over gRPC", async () =>
          expect((await size.infer({ DATA: tensor(2 ** 20) })).BYTES).toBe(2 ** 20),
        ),
        repeat("gRPC-web", async () => {
          const headers = { "content-type": "application/grpc-web+proto" }
          // An empty message.
          const { status, text } = await call("/inference.GRPCInferenceService/ServerLive", Buffer.alloc(5), headers)
          if (status !== 200 || !text.includes("grpc-status: 0")) throw new Error(`${status} ${JSON.stringify(text)}`)
        }),
        repeat("streams over gRPC", () => numbersOf(three)),
        repeat("streams over HTTP", () => numbersOf(threeOverHttp)),
        repeat("health", async () => {
          const { status } = await call("/v2/health/live")
          if (status !== 200) throw new Error(`${status}`)
        }),
      ]
      for (const [index, server] of servers.entries()) {
        const place = { http: server.http.port, grpc: server.grpc.port }
        await server.stop()
        servers[index] = await start(index + 4, place)
        // The proxy has to find it, before the next one stops.
        await expect.poll(() => seen.has(index + 4), { timeout: 20_000 }).toBe(true)
        // nginx leaves out a server that has failed for its `fail_timeout` of 2 seconds, also if it has returned.
        await pause(2_500)
      }
      over.abort()
      await Promise.all(traffic)
      expect([...failures]).toEqual([])
      expect(counts.size).toBe(8)
      for (const [protocol, count] of counts) expect([protocol, count > 5]).toEqual([protocol, true])
      console.log(`${proxy.name}: ${[...counts].map(([protocol, count]) => `${protocol} ${count}`).join(", ")}`)
    },
    120_000,
  )

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
