/** Requests to node:http, and the problems reported for unexpected replies. */
import { once } from "node:events"
import { createServer, type RequestListener, type Server } from "node:http"
import { type AddressInfo, createServer as createTcp } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import type { Address } from "../target/Address.ts"
import * as ClosedLoop from "../load/ClosedLoop.ts"
import * as Lane from "../load/Lane.ts"
import * as HttpInfer from "./HttpInfer.ts"

const serve = async (listener: RequestListener, change: (server: Server) => void = () => {}): Promise<Address> => {
  const server = createServer(listener)
  change(server)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port }
}

interface LoadOptions {
  readonly body?: Uint8Array
  readonly replyLength?: number | undefined
  readonly requests?: number
  readonly patience?: number
}

/** Sends requests on 4 connections, one at a time on each. */
const load = async (
  address: Address,
  { body = Buffer.from("hello"), requests = 4, patience = 5000, ...rest }: LoadOptions,
) => {
  const request = { method: "POST", path: "/infer", headers: { "content-type": "x/y" }, body } as const
  const replyLength = "replyLength" in rest ? rest.replyLength : 5
  const lanes = await Lane.openAll(HttpInfer.target(address, [{ request, replyLength }]), 4)
  onTestFinished(() => lanes.forEach((lane) => lane.close()))
  const measured = await ClosedLoop.run(lanes, { concurrency: 4, requests, patience })
  return { ...measured, problems: Object.fromEntries(measured.problems.messages) }
}

const echo: RequestListener = (request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => response.end(Buffer.concat(chunks)))
}

it("requests come back as they should, each connection used again", async () => {
  const connections = new Set<unknown>()
  const address = await serve((request, response) => {
    connections.add(request.socket)
    expect(request.headers).toMatchObject({ "content-type": "x/y", "content-length": "5", host: expect.any(String) })
    echo(request, response)
  })
  expect(await load(address, { requests: 200 })).toMatchObject({ requests: 200, problems: {}, reconnections: 0 })
  expect(connections.size).toBe(4)
})

it("bodies of 3 MB go both ways", async () => {
  const body = Buffer.alloc(3_000_000, "x")
  expect(await load(await serve(echo), { body, replyLength: body.length, requests: 20 })).toMatchObject({
    requests: 20,
    problems: {},
  })
})

it("replies in chunks have their length too", async () => {
  const address = await serve((request, response) => {
    request.resume().on("end", () => {
      response.write("he")
      response.end("llo")
    })
  })
  expect(await load(address, { requests: 40 })).toMatchObject({ requests: 40, problems: {}, reconnections: 0 })
})

it("reconnects to a server that closes after every response", async () => {
  const address = await serve((request, response) => {
    response.setHeader("connection", "close")
    echo(request, response)
  })
  expect(await load(address, { requests: 20 })).toMatchObject({ requests: 20, problems: {}, reconnections: 16 })
})

it("reconnects to a server that closes after some responses", async () => {
  const address = await serve(echo, (server) => (server.maxRequestsPerSocket = 3))
  expect(await load(address, { requests: 60 })).toMatchObject({ requests: 60, problems: {} })
})

it("a connection that closes while a request is on its way to it costs nothing", async () => {
  const listener = createTcp((socket) => {
    let replies = 0
    socket.on("error", () => {})
    socket.on("data", () => {
      if (replies++ < 2) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
      else socket.destroy()
    })
  })
  listener.listen(0, "127.0.0.1")
  await once(listener, "listening")
  onTestFinished(() => void listener.close())
  const address = { host: "127.0.0.1", port: (listener.address() as AddressInfo).port }
  expect(await load(address, { requests: 40 })).toMatchObject({ requests: 40, problems: {} })
})

it.each<readonly [string, RequestListener, string]>([
  [
    "an error of the protocol",
    (_, response) => response.writeHead(400).end('{"error":"no such input"}'),
    "HTTP status 400: no such input",
  ],
  ["a page", (_, response) => response.writeHead(502).end("<p>Bad Gateway</p>"), "HTTP status 502: <p>Bad Gateway</p>"],
  ["no words", (_, response) => response.writeHead(503).end(), "HTTP status 503"],
  ["a length that differs", (_, response) => response.end("no"), "the response has 2 bytes, expected 5"],
  ["no reply", (request) => request.socket.destroy(), "the server closed the connection"],
])("a reply with %s is a problem", async (_, listener, problem) => {
  const { requests, problems } = await load(await serve(listener), { requests: 8 })
  expect({ requests, problems }).toEqual({ requests: 0, problems: { [problem]: 8 } })
})

it("a refusal before the request is all sent is one reply, not two", async () => {
  const body = Buffer.alloc(20_000_000)
  const address = await serve((_, response) => response.writeHead(413).end())
  const { problems } = await load(address, { body })
  expect(problems).toEqual({ "HTTP status 413": 4 })
})

it("replies that never come are given up", async () => {
  const { problems } = await load(await serve(() => {}), { patience: 20 })
  expect(problems).toEqual({ "no response within 0.02 s": 4 })
})

it("reports an unreachable server immediately", async () => {
  await expect(load({ host: "127.0.0.1", port: 1 }, {})).rejects.toThrow("cannot connect to 127.0.0.1:1: ")
})
