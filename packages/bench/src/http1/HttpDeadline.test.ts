/** HTTP requests whose callers give up, against node:http. */
import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { timeoutHeader } from "@nereid/core/internal/codec/json/BinaryExtension"
import { CallDeadline, type Overload } from "../target/Load.ts"
import * as HttpInfer from "./HttpInfer.ts"

const serve = async (listener: RequestListener) => {
  const server = createServer(listener)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const request = { method: "POST", path: "/infer", headers: {}, body: Buffer.from("hello") } as const
  return {
    server,
    target: HttpInfer.target({ host: "127.0.0.1", port: (server.address() as AddressInfo).port }, [
      { request, replyLength: undefined },
    ]),
  }
}

it.each<readonly [number, Record<string, string>, Overload | undefined]>([
  [503, {}, "refused"],
  [429, {}, "refused"],
  [503, { "nereid-error": "DeadlineExceeded" }, "late"],
  [504, {}, "late"],
  [500, {}, undefined],
])("tells the time that is left; a reply of %i with %o is %s", async (status, headers, overload) => {
  let told: unknown
  const { target } = await serve((request, response) => {
    told = request.headers[timeoutHeader]
    response.writeHead(status, headers).end()
  })
  const replied = Promise.withResolvers<unknown>()
  const connection = await target.connect({
    onReply: (_, __, found) => replied.resolve(found),
    onUnseen: () => {},
  })
  const now = performance.now()
  connection.send(now, new CallDeadline(now + 90_000, true))
  expect(await replied.promise).toBe(overload)
  expect(String(told)).toMatch(/^0(90000|8\d{4})$/)
  connection.close()
})

it("a request that is given up closes its connection", async () => {
  const { server, target } = await serve(() => {})
  const closed = once(server, "connection").then(async ([socket]) => once(socket, "close"))
  const arrived = once(server, "request")
  const replies: Array<unknown> = []
  const connection = await target.connect({ onReply: (...reply) => replies.push(reply), onUnseen: () => {} })
  const deadline = new CallDeadline(performance.now() + 1000, false)
  connection.send(0, deadline)
  await arrived
  deadline.cancel()
  await closed
  expect(connection.accepts).toBe(false)
  expect(replies).toEqual([])
})
