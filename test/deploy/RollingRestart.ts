/** A restart of all servers behind a proxy, one after the other, under constant traffic over each protocol. */
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { expect } from "vitest"
import { pause, type ProxiedServer, Size, start, type StartOptions, Three } from "./ProxiedModels.ts"
import type { RunningProxy } from "./Proxy.ts"

export interface RollingRestart {
  /** Requests that were answered rightly, by their protocol. */
  readonly answered: ReadonlyMap<string, number>
  /** The others, by their protocol and what was wrong. */
  readonly failed: ReadonlyMap<string, number>
}

const tensor = (bytes: number) => Tensor.make("UINT8", [bytes], new Uint8Array(bytes))

/** Counts the results of calls that are repeated until an end. */
class Traffic {
  readonly answered = new Map<string, number>()
  readonly failed = new Map<string, number>()
  #isOver = false
  readonly #loops: Array<Promise<void>> = []

  repeat(protocol: string, call: () => Promise<unknown>): void {
    this.#loops.push(this.#loop(protocol, call))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
  }

  async #loop(protocol: string, call: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      await call().then(
        () => this.answered.set(protocol, (this.answered.get(protocol) ?? 0) + 1),
        (error: unknown) => {
          const failure = `${protocol}: ${String(error)}`
          this.failed.set(failure, (this.failed.get(failure) ?? 0) + 1)
        },
      )
      await pause(5)
    }
  }
}

/** `servers` has the new servers afterwards. `first`: the number of the first one. `options`: of these. */
export const rollingRestart = async (
  proxy: RunningProxy,
  servers: Array<ProxiedServer>,
  first: number,
  options: Pick<StartOptions, "tls"> = {},
): Promise<RollingRestart> => {
  await using size = await Client.connect(Size, proxy.url("grpcs"))
  await using three = await Client.connect(Three, proxy.url("grpcs"))
  await using sizeOverHttp = await Client.connect(Size, proxy.url("https"))
  await using threeOverHttp = await Client.connect(Three, proxy.url("https"))
  const numbersOf = async (client: typeof three) => {
    const numbers: Array<number> = []
    for await (const { NUMBER } of client.stream({ GO: true })) numbers.push(NUMBER)
    expect(numbers).toEqual([1, 2, 3])
  }
  const bytesOf = async (client: typeof size, bytes: number) =>
    expect((await client.infer({ DATA: tensor(bytes) })).BYTES).toBe(bytes)
  const seen = new Set<number>()
  const traffic = new Traffic()
  traffic.repeat("HTTP", async () => void seen.add(await proxy.server()))
  // Several at a time: a call that a proxy sends just before it reads a GOAWAY must not be lost.
  for (let caller = 0; caller < 4; caller++) traffic.repeat("gRPC", () => bytesOf(size, 10))
  traffic.repeat("large tensors over HTTP", () => bytesOf(sizeOverHttp, 2 ** 20))
  traffic.repeat("large tensors over gRPC", () => bytesOf(size, 2 ** 20))
  traffic.repeat("gRPC-web", async () => {
    const headers = { "content-type": "application/grpc-web+proto" }
    const empty = Buffer.alloc(5)
    const { status, text } = await proxy.call("/inference.GRPCInferenceService/ServerLive", empty, headers)
    if (status !== 200 || !text.includes("grpc-status: 0")) throw new Error(`${status} ${JSON.stringify(text)}`)
  })
  traffic.repeat("streams over gRPC", () => numbersOf(three))
  traffic.repeat("streams over HTTP", () => numbersOf(threeOverHttp))
  traffic.repeat("health", async () => expect((await proxy.call("/v2/health/live")).status).toBe(200))
  for (const [index, server] of servers.entries()) {
    const place = { http: server.http.port, grpc: server.grpc.port }
    await server.stop()
    servers[index] = await start(first + index, { ...place, ...options })
    // The proxy has to find it, before the next one stops.
    await expect.poll(() => seen.has(first + index), { timeout: 20_000 }).toBe(true)
    // nginx leaves out a server that has failed for its `fail_timeout` of 2 seconds, also if it has returned.
    await pause(2_500)
  }
  await traffic.end()
  return traffic
}

/** Each protocol had requests, and none of them failed. */
export const expectNoneLost = (name: string, { answered, failed }: RollingRestart): void => {
  expect([...failed]).toEqual([])
  expect(answered.size).toBe(8)
  for (const [protocol, count] of answered) expect([protocol, count > 5]).toEqual([protocol, true])
  console.log(`${name}: ${[...answered].map(([protocol, count]) => `${protocol} ${count}`).join(", ")}`)
}
