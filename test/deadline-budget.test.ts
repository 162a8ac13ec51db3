/** A caller's deadline as a budget: calls that a handler makes inherit the remaining time, and end with the request. */
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

/** Milliseconds that its handler has; -1 for any number. */
class Left extends Model.Service<Left>()("left", { inputs: {}, outputs: { MILLIS: Tensor.scalar("FP64") } }) {}

/** Calls Left, on another server. */
class Front extends Model.Service<Front>()("front", { inputs: {}, outputs: { MILLIS: Tensor.scalar("FP64") } }) {}

/** Requests a web server from a function, or from an effect. */
class Outgoing extends Model.Service<Outgoing>()("outgoing", {
  inputs: { HOW: Tensor.labels(["function", "effect"]) },
  outputs: { STATUS: Tensor.scalar("INT32") },
}) {}

const LeftLive = Model.each(Left, (_, { remaining }) => ({ MILLIS: remaining() ?? -1 }))
const FrontLive = Model.each(
  Front,
  Effect.map(Left, (left) => () => left.infer({})),
)

const anywhere = { host: "127.0.0.1", port: 0 } as const
const ports = { http: anywhere, grpc: anywhere, metrics: false } as const

describe.each(["grpc", "http"] as const)("through a second server, over %s", (protocol) => {
  it("the inner handler gets the remaining time of the deadline, or no limit without one", async () => {
    const back = await Server.start([Left], LeftLive, ports)
    const url = `${protocol}://127.0.0.1:${back[protocol].port}`
    const layer = FrontLive.pipe(Layer.provide(Client.layer(Left, { url })))
    const front = await Server.start([Front], layer, ports)
    try {
      await using client = await Client.connect(Front, { url: `${protocol}://127.0.0.1:${front[protocol].port}` })
      const { MILLIS } = await client.infer({}, { timeout: "30 seconds" })
      expect(MILLIS).toBeGreaterThan(0)
      expect(MILLIS).toBeLessThanOrEqual(30_000)
      expect(await client.infer({})).toEqual({ MILLIS: -1 })
    } finally {
      await front.stop()
      await back.stop()
    }
  })
})

describe("requests to other servers that a handler makes", () => {
  let gone = () => {}
  // Never answers.
  const web = createServer((_, response) => void response.on("close", () => gone()))
  beforeAll(async () => {
    web.listen(0, "127.0.0.1")
    await once(web, "listening")
  })
  afterAll(() => void web.close())

  it.each(["function", "effect"] as const)("by %s end when the deadline has passed", async (HOW) => {
    const { port } = web.address() as AddressInfo
    const url = `http://127.0.0.1:${port}/`
    const live = Model.each(Outgoing, ({ HOW }, { signal }) =>
      HOW === "function"
        ? fetch(url, { signal }).then(({ status }) => ({ STATUS: status }))
        : Effect.map(
            Effect.promise((signal) => fetch(url, { signal })),
            ({ status }) => ({ STATUS: status }),
          ),
    )
    const server = await Server.start([Outgoing], live, ports)
    try {
      await using client = await Client.connect(Outgoing, { url: `grpc://127.0.0.1:${server.grpc.port}` })
      const closed = new Promise<void>((resolve) => (gone = resolve))
      await expect(client.infer({ HOW }, { timeout: "1 second" })).rejects.toMatchObject({ _tag: "DeadlineExceeded" })
      await closed
    } finally {
      await server.stop()
    }
  })
})
