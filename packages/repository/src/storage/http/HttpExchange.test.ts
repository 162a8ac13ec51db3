/** Replies that are too slow, or too long, over a real socket. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { sendForText } from "./HttpExchange.ts"
import * as LocalServer from "./LocalServer.fixture.ts"

const minRate = { bytes: 1000, period: 200 }

/** A server that sends a byte every 20 milliseconds, for ever, after this many at once. */
const dripping = (first: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((_, response) => {
        response.writeHead(200).write(Buffer.alloc(first))
        const timer = setInterval(() => response.write("x"), 20)
        response.once("close", () => clearInterval(timer))
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return server
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      }),
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

it.live.each([0, 5000])("a reply that drips after %i bytes fails, and may be repeated", (first) =>
  Effect.gen(function* () {
    const origin = yield* dripping(first)
    const problem = yield* Effect.flip(sendForText({ method: "GET", origin, path: "/", minRate }))
    expect(problem).toMatchObject({
      kind: "unreachable",
      code: "TooSlow",
      message: `fewer than 1000 bytes in 0.2 seconds (${origin})`,
    })
  }),
)

it.live("a connection without a byte fails with the time that it took", () =>
  Effect.gen(function* () {
    const origin = yield* dripping(1)
    const problem = yield* Effect.flip(sendForText({ method: "GET", origin, path: "/", timeout: 10 }))
    expect([problem.code, problem.message]).toEqual(["ETIMEDOUT", `no data from ${origin} for 0.01 seconds`])
  }),
)

it.live("a text of more than 16 MiB fails", () =>
  Effect.gen(function* () {
    const { origin } = yield* LocalServer.make(() => ({ body: Buffer.alloc(16 * 1024 * 1024 + 1) }))
    const problem = yield* Effect.flip(sendForText({ method: "GET", origin, path: "/" }))
    expect([problem.kind, problem.code]).toEqual(["failed", "TooLarge"])
  }),
)
