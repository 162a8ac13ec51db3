/**
 * Sessions with `retries` whose connection is cut after the server has executed a request, and before its reply
 * arrives: the request is sent again, and the state has advanced once.
 */
import { Client } from "@nereid/client"
import { Client as BrowserClient } from "@nereid/client/browser"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import * as net from "node:net"
import { describe, expect, it } from "vitest"

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  sequence: { state: { SUM: Tensor.scalar("INT32") } },
}) {}

/** Executed values, and a function for each execution. */
const executed: { values: Array<number>; onValue: (value: number) => void } = { values: [], onValue: () => {} }

const SumsLive = Model.sequence(Sums, ({ VALUE }, { state: { SUM } }) => {
  executed.values.push(VALUE)
  executed.onValue(VALUE)
  return { outputs: { TOTAL: SUM + VALUE }, state: { SUM: SUM + VALUE } }
})

/** Forwards connections to a port, until the next one is cut. */
const proxied = async (port: number) => {
  const sockets = new Set<net.Socket>()
  let isMuted = false
  const server = net.createServer((client) => {
    const upstream = net.connect(port, "127.0.0.1")
    sockets.add(client)
    for (const socket of [client, upstream]) socket.on("error", () => {})
    client.on("close", () => {
      sockets.delete(client)
      upstream.destroy()
    })
    upstream.on("close", () => client.destroy())
    client.pipe(upstream)
    upstream.on("data", (bytes) => isMuted || client.write(bytes))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    /** Passes no more replies on. */
    mute: () => (isMuted = true),
    /** Closes all connections; later ones work. */
    cut: () => {
      for (const socket of sockets) socket.destroy()
      isMuted = false
    },
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

const anywhere = { host: "127.0.0.1", port: 0 } as const

const started = () =>
  Server.start([Sums], SumsLive, { http: anywhere, grpc: anywhere, metrics: false, drainTimeout: "200 millis" })

type Port = "http" | "grpc"

const clients: ReadonlyArray<readonly [string, Port, (port: number) => ReturnType<typeof connect>]> = [
  ["gRPC", "grpc", (port) => connect(`grpc://127.0.0.1:${port}`)],
  ["gRPC, with replicas", "grpc", (port) => Client.connect(Sums, { url: [`grpc://127.0.0.1:${port}`] })],
  ["HTTP", "http", (port) => connect(`http://127.0.0.1:${port}`)],
  ["HTTP, with replicas", "http", (port) => Client.connect(Sums, { url: [`http://127.0.0.1:${port}`] })],
  ["the client for browsers", "http", (port) => BrowserClient.connect(Sums, { url: `http://127.0.0.1:${port}` })],
]

const connect = (url: string) => Client.connect(Sums, { url })

/** Cuts the connection once the server has executed this value, before the caller has its reply. */
const cutAfter = (proxy: Awaited<ReturnType<typeof proxied>>, value: number) => {
  executed.values = []
  executed.onValue = (current) => {
    if (current !== value) return
    executed.onValue = () => {}
    proxy.mute()
    // The server has written its reply by then.
    setImmediate(() => setImmediate(proxy.cut))
  }
}

describe.each(clients)("%s", (_, port, connect) => {
  it.each([
    ["the first request", 1],
    ["a later request", 2],
    ["the last request", 4],
  ] as const)("%s whose connection is lost is executed once", async (_, value) => {
    await using server = await started()
    await using proxy = await proxied(server[port].port)
    await using sums = await connect(proxy.port)
    const session = sums.session({ retries: true })
    cutAfter(proxy, value)
    const totals = [
      await session.infer({ VALUE: 1 }),
      await session.infer({ VALUE: 2 }),
      await session.infer({ VALUE: 3 }),
      await session.end({ VALUE: 4 }),
    ]
    expect(totals.map(({ TOTAL }) => TOTAL)).toEqual([1, 3, 6, 10])
    expect(executed.values).toEqual([1, 2, 3, 4])
  })

  it("a session without retries fails with its connection", async () => {
    await using server = await started()
    await using proxy = await proxied(server[port].port)
    await using sums = await connect(proxy.port)
    await using session = sums.session()
    cutAfter(proxy, 2)
    await session.infer({ VALUE: 1 })
    await expect(session.infer({ VALUE: 2 })).rejects.toMatchObject({
      _tag: expect.stringMatching(/^(Unavailable|SequenceNotFound)$/),
    })
    expect(executed.values).toEqual([1, 2])
  })

  it("a session whose server has restarted does not wait for it", async () => {
    const first = await started()
    await using sums = await connect(first[port].port)
    await using session = sums.session({ retries: true })
    await session.infer({ VALUE: 1 })
    const ports = { http: { ...anywhere, port: first.http.port }, grpc: { ...anywhere, port: first.grpc.port } }
    await first.stop()
    await using _second = await Server.start([Sums], SumsLive, { ...ports, metrics: false, drainTimeout: 0 })
    const error = await session.infer({ VALUE: 2 }).catch((error: unknown) => error)
    expect(error).toMatchObject({ _tag: "SequenceNotFound" })
  })
})
