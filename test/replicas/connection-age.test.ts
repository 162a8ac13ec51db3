/**
 * Servers behind a balancer of connections, such as a Service of Kubernetes: a client keeps its connection to a server
 * until the connection is too old, and then reaches a server that has come later.
 */
import { once } from "node:events"
import { Agent, type IncomingMessage, request } from "node:http"
import { connect, createServer, type Socket } from "node:net"
import { Client } from "@nereid/client"
import { Model } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Work } from "./models.ts"

/** Gives each connection to the newest of its ports. */
class Balancer implements AsyncDisposable {
  readonly ports: Array<number>
  connections = 0
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer({ noDelay: true }, (client) => {
    this.connections += 1
    const server = connect({ port: this.ports.at(-1) ?? 0, host: "127.0.0.1", noDelay: true })
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from)
      from.on("error", () => to.destroy())
      from.on("close", () => to.destroy())
      from.pipe(to)
    }
  })

  private constructor(port: number) {
    this.ports = [port]
  }

  static async start(port: number): Promise<Balancer> {
    const balancer = new Balancer(port)
    balancer.#server.listen(0, "127.0.0.1")
    await once(balancer.#server, "listening")
    return balancer
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === "object" && address !== null ? address.port : 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close")
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

/** `age`: of its connections, in milliseconds. */
const start = (PROCESS: number, age: number | undefined) => {
  const local = { host: "127.0.0.1", port: 0 }
  const models = Model.each(Work, ({ X }) => Effect.succeed({ Y: 2 * X, PROCESS }))
  const ages = age === undefined ? {} : { keepalive: { maxConnectionAge: age }, maxHttpConnectionAge: age }
  return Server.start([Work], models, { http: local, grpc: local, metrics: false, ...ages })
}

interface Caller extends AsyncDisposable {
  /** Returns the number of the server that has answered. */
  readonly call: () => Promise<number>
}

/** Callers of one connection at a time. */
const callers = {
  grpc: async (port: number): Promise<Caller> => {
    const client = await Client.connect(Work, { url: `grpc://127.0.0.1:${port}` })
    const call = async () => (await client.infer({ X: 1 })).PROCESS
    return { call, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() }
  },
  http: async (port: number): Promise<Caller> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const body = JSON.stringify({ inputs: [{ name: "X", datatype: "INT32", shape: [1], data: [1] }] })
    const call = async () => {
      const path = "/v2/models/work/infer"
      const sent = request({ host: "127.0.0.1", port, path, method: "POST", agent }).end(body)
      const [response]: ReadonlyArray<IncomingMessage> = await once(sent, "response")
      const { outputs }: { outputs: ReadonlyArray<{ name: string; data: ReadonlyArray<number> }> } = JSON.parse(
        Buffer.concat(await Array.fromAsync(response ?? [])).toString(),
      )
      return outputs.find(({ name }) => name === "PROCESS")?.data[0] ?? 0
    }
    return { call, [Symbol.asyncDispose]: async () => agent.destroy() }
  },
}

describe.each(["grpc", "http"] as const)("over %s", (protocol) => {
  it("traffic reaches a new server once connections have their age, and no call fails", async () => {
    await using one = await start(1, 300)
    await using balancer = await Balancer.start(one[protocol].port)
    await using caller = await callers[protocol](balancer.port)
    expect(await caller.call()).toBe(1)
    await using two = await start(2, 300)
    balancer.ports.push(two[protocol].port)
    const seen: Array<number> = []
    while (seen.at(-1) !== 2) seen.push(await caller.call())
    for (let call = 0; call < 20; call++) seen.push(await caller.call())
    expect(new Set(seen.slice(-20))).toEqual(new Set([2]))
  })

  it("traffic stays where it is without an age", async () => {
    await using one = await start(1, undefined)
    await using balancer = await Balancer.start(one[protocol].port)
    await using caller = await callers[protocol](balancer.port)
    expect(await caller.call()).toBe(1)
    const { connections } = balancer
    await using two = await start(2, undefined)
    balancer.ports.push(two[protocol].port)
    for (let call = 0; call < 200; call++) expect(await caller.call()).toBe(1)
    expect(balancer.connections).toBe(connections)
  })
})
