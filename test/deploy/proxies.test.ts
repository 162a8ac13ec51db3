/**
 * The configurations of deploy/proxies, which the guide on deployment shows, run by the proxies themselves, in front of
 * three servers. Each proxy is skipped where its program is not installed.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { root } from "../Program.ts"
import { gates, type ProxiedServer, Size, start, Two } from "./ProxiedModels.ts"
import { isInstalled, proxies, read, RunningProxy } from "./Proxy.ts"
import { expectNoneLost, rollingRestart } from "./RollingRestart.ts"

const guide = readFileSync(join(root, "docs/guides/deployment.md"), "utf8")

it.each(["nginx.conf", "haproxy.cfg", "envoy.yaml"])("the guide shows %s", (file) => {
  const [block = ""] = new RegExp(`^# ${RegExp.escape(file)}\\n([^]*?)(?=^\`\`\`)`, "m").exec(guide) ?? []
  expect(block).toBe(read(file))
})

const tensor = (bytes: number) => Tensor.make("UINT8", [bytes], new Uint8Array(bytes))

describe.each(proxies)("$name", (definition) => {
  let servers: Array<ProxiedServer> = []
  let proxy: RunningProxy
  const installed = isInstalled(definition)

  beforeAll(async () => {
    if (!installed) return
    servers = await Promise.all([start(1), start(2), start(3)])
    proxy = await RunningProxy.start(definition, servers)
  })

  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await Promise.all(servers.map((server) => server.stop()))
  })

  it.skipIf(!installed)("terminates TLS, and forwards the address of the client, over HTTP and gRPC", async () => {
    const { status, text } = await proxy.infer(3)
    expect({ status, ...JSON.parse(text) }).toMatchObject({
      status: 200,
      outputs: [
        { name: "BYTES", data: [3] },
        { name: "FOR", data: [expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/)] },
        { name: "SERVER" },
      ],
    })
    await using size = await Client.connect(Size, proxy.url("grpcs"))
    const { BYTES, FOR } = await size.infer({ DATA: tensor(5) })
    expect(BYTES).toBe(5)
    expect(FOR).toMatch(/^\d+\.\d+\.\d+\.\d+$/)
  })

  it.skipIf(!installed)("passes a body of 8 MiB, over HTTP and gRPC", async () => {
    const DATA = tensor(8 * 2 ** 20)
    for (const protocol of ["https", "grpcs"] as const) {
      await using size = await Client.connect(Size, proxy.url(protocol))
      expect(await size.infer({ DATA })).toMatchObject({ BYTES: 8 * 2 ** 20 })
    }
  })

  it.skipIf(!installed)("passes each response of a stream at once, over HTTP and gRPC", async () => {
    for (const protocol of ["https", "grpcs"] as const) {
      await using two = await Client.connect(Two, proxy.url(protocol))
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
    for (let sequence = 0; sequence < 20; sequence++) {
      const headers = { "x-sequence-id": `${sequence}` }
      await using size = await Client.connect(Size, { ...proxy.url("grpcs"), headers })
      for (let request = 0; request < 5; request++) {
        note("http", sequence, await proxy.server(headers))
        note("grpc", sequence, (await size.infer({ DATA: tensor(1) })).SERVER)
      }
    }
    expect([...used.values()].filter((servers) => servers.size !== 1)).toEqual([])
    expect(new Set([...used.values()].flatMap((servers) => [...servers])).size).toBe(3)
  })

  it.skipIf(!installed)("loses no request while all servers restart", { timeout: 120_000 }, async () => {
    expectNoneLost(definition.name, await rollingRestart(proxy, servers, 4))
  })

  it.skipIf(!installed || definition.name === "nginx")(
    "leaves out a server that reports not ready, while that still answers, over HTTP and gRPC",
    async () => {
      await using size = await Client.connect(Size, proxy.url("grpcs"))
      const called = (server: () => Promise<number>) => async () =>
        [...new Set(await Promise.all(Array.from({ length: 20 }, server)))].toSorted((one, other) => one - other)
      const answering = {
        http: called(() => proxy.server()),
        grpc: called(() => size.infer({ DATA: tensor(1) }).then(({ SERVER }) => SERVER)),
      }
      /** The servers that answer within 9 seconds are these. */
      const expectAll = async (numbers: ReadonlyArray<number>) => {
        for (const protocol of ["http", "grpc"] as const) {
          await expect.poll(answering[protocol], { timeout: 9_000, message: protocol }).toEqual(numbers)
        }
      }
      const [first, ...others] = servers
      if (first === undefined) throw new Error("there is no server")
      const place = { http: first.http.port, grpc: first.grpc.port }
      const rest = (await answering.http()).slice(1)
      expect(rest).toHaveLength(2)
      await first.stop()
      const ending = await start(7, { ...place, drainDelay: 12 })
      servers = [ending, ...others]
      await expectAll([...rest, 7])
      const ended = ending.stop()
      await expectAll(rest)
      const direct = `http://127.0.0.1:${place.http}/v2`
      expect((await fetch(`${direct}/models/size`)).status).toBe(200)
      expect((await fetch(`${direct}/health/ready`)).status).toBe(400)
      await ended
      servers = [await start(8, place), ...others]
      await expectAll([...rest, 8])
    },
    60_000,
  )

  it.skipIf(!installed)("loses no request when a server stops", async () => {
    let isStopped = false
    const callers = Array.from({ length: 4 }, async () => {
      const statuses: Array<number> = []
      for (let after = 0; after < 20; after += isStopped ? 1 : 0) statuses.push((await proxy.infer(10)).status)
      return statuses
    })
    await using size = await Client.connect(Size, proxy.url("grpcs"))
    const overGrpc = (async () => {
      for (let after = 0; after < 20; after += isStopped ? 1 : 0) {
        await size.infer({ DATA: tensor(1) })
      }
    })()
    await servers[0]?.stop()
    isStopped = true
    const [statuses] = await Promise.all([Promise.all(callers), overGrpc])
    expect(new Set(statuses.flat())).toEqual(new Set([200]))
  })
})
