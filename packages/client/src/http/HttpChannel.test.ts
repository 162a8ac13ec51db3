/**
 * The HTTP client against a scripted server, which can behave like servers of other vendors. test/client-server.test.ts
 * covers the client with our own server.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
import { Duration } from "effect"
import { expect, it, onTestFinished, vi } from "vitest"
import * as Model from "@nereid/core/Model"
import { retryAfter as retryAfterOf } from "@nereid/core/internal/error/InferenceError"
import * as Tensor from "@nereid/core/Tensor"
import * as Client from "../Client.ts"

class Double extends Model.Service<Double>()("dou ble%", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { Y: Tensor.scalar("FP32") },
}) {}

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

const serve = async (handler: Handler) => {
  const server = createServer((request, response) => void handler(request, response))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close")
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** The outcome of one call to a server that handles it so. */
const outcome = async (handler: Handler, options: Partial<Client.ClientOptions> = {}, path = "") => {
  await using server = await serve(handler)
  await using client = await Client.connect(Double, { url: server.url + path, ...options })
  return await client.infer({ X: 2 }, { id: "7" }).then(
    ({ Y }) => Y,
    (error: { readonly _tag: string; readonly message: string }) =>
      `${error._tag}: ${error.message.replace(String(server.port), "PORT")}`,
  )
}

const sendResponse = (response: ServerResponse, body: string | Buffer, headers: Record<string, string | number> = {}) =>
  response.writeHead(200, headers).end(body)

const document = (output: object) => JSON.stringify({ model_name: "double", model_version: "1", outputs: [output] })

const binary = (y: number) => {
  const json = document({ name: "Y", datatype: "FP32", shape: [1], parameters: { binary_data_size: 4 } })
  const body = Buffer.concat([Buffer.from(json), new Uint8Array(Float32Array.of(y).buffer)])
  return { body, headers: { "Inference-Header-Content-Length": json.length } }
}

it("sends the request with binary tensors and reads a binary reply", async () => {
  let sent: unknown
  const result = await outcome(
    async (request, response) => {
      const length = Number(request.headers["inference-header-content-length"])
      const body = await buffer(request)
      const json: unknown = JSON.parse(body.subarray(0, length).toString())
      const { authorization, "nereid-timeout-ms": timeout } = request.headers
      sent = [request.method, request.url, json, [...body.subarray(length)], authorization, timeout]
      const { body: reply, headers } = binary(4)
      sendResponse(response, reply, headers)
    },
    { timeout: "1 hour", headers: { Authorization: "Bearer x" }, version: 3 },
    "/serving/",
  )
  expect(result).toBe(4)
  const input = { name: "X", datatype: "FP32", shape: [1], parameters: { binary_data_size: 4 } }
  expect(sent).toEqual([
    "POST",
    "/serving/v2/models/dou%20ble%25/versions/3/infer",
    expect.objectContaining({ id: "7", inputs: [input], parameters: { binary_data_output: true } }),
    [0, 0, 0, 64],
    "Bearer x",
    "3600000",
  ])
})

it.each<[Duration.Input | undefined, string | undefined]>([
  [undefined, undefined],
  [Duration.infinity, undefined],
  [1e30, "999999999999"],
  [59_999.2, "60000"],
])("a timeout of %s is sent as %s", async (timeout, expected) => {
  let sent: unknown = "nothing"
  const handler: Handler = (request, response) => {
    sent = request.headers["nereid-timeout-ms"]
    const { body, headers } = binary(4)
    sendResponse(response, body, headers)
  }
  await outcome(handler, timeout === undefined ? {} : { timeout })
  expect(sent).toBe(expected)
})

it("reads a reply in JSON, as servers without the binary extension send it", async () => {
  const body = document({ name: "Y", datatype: "FP32", shape: [1], data: [8] })
  expect(await outcome((_, response) => sendResponse(response, body))).toBe(8)
})

it.each([
  ["a tag", { "nereid-error": "QueueFull", "retry-after": "2" }, "QueueFull", 2000],
  ["no tag, as of a proxy", { "retry-after": "30" }, "Unavailable", 30_000],
  ["a date", { "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT" }, "Unavailable", undefined],
  ["nothing", {}, "Unavailable", undefined],
])("a refusal has a retry delay: %s", async (_, headers, _tag, retryAfter) => {
  await using server = await serve((_, response) => response.writeHead(503, headers).end(`{"error":"full"}`))
  await using client = await Client.connect(Double, { url: server.url })
  const error: unknown = await client.infer({ X: 2 }).catch((error: unknown) => error)
  expect(error).toMatchObject({ _tag, message: "full" })
  expect(retryAfterOf(Object(error))).toBe(retryAfter)
})

it.each<[string, Handler, string]>([
  [
    "a tag names the error",
    (_, response) => response.writeHead(503, { "nereid-error": "QueueFull" }).end(`{"error":"full"}`),
    "QueueFull: full",
  ],
  [
    "an unknown tag does not",
    (_, response) => response.writeHead(404, { "nereid-error": "Odd" }).end(`{"error":"no m"}`),
    "ModelNotFound: no m",
  ],
  [
    "a page of a proxy",
    (_, response) => response.writeHead(502).end("<h1>no</h1>"),
    "Unavailable: the server answered with HTTP status 502",
  ],
  [
    "an error that is no text",
    (_, response) => response.writeHead(400).end(`{"error":{}}`),
    "InvalidRequest: the server answered with HTTP status 400",
  ],
  [
    "a redirect",
    (_, response) => response.writeHead(302, { location: "/" }).end(),
    "ExecutionFailed: the server answered with HTTP status 302",
  ],
  [
    "an empty body",
    (_, response) => sendResponse(response, ""),
    "ExecutionFailed: cannot decode the server's response: ",
  ],
  [
    "no JSON",
    (_, response) => sendResponse(response, "<h1>"),
    "ExecutionFailed: cannot decode the server's response: ",
  ],
  [
    "other JSON",
    (_, response) => sendResponse(response, "[1]"),
    "ExecutionFailed: cannot decode the server's response: ",
  ],
  [
    "a header length beyond the body",
    (_, response) => sendResponse(response, "{}", { "Inference-Header-Content-Length": 3 }),
    "ExecutionFailed: cannot decode the server's response: the header of the response should have 0 to 2 bytes, got: 3",
  ],
  [
    "a header length that is no number",
    (_, response) => sendResponse(response, "{}", { "Inference-Header-Content-Length": "x" }),
    "ExecutionFailed: cannot decode the server's response: Unable to parse Inference-Header-Content-Length",
  ],
  [
    "less binary data than announced",
    (_, response) => sendResponse(response, binary(4).body.subarray(0, -1), binary(4).headers),
    "ExecutionFailed: cannot decode the server's response: the response ends 1 bytes before the end",
  ],
  [
    "another datatype",
    (_, response) => sendResponse(response, document({ name: "Y", datatype: "INT32", shape: [1], data: [8] })),
    "ExecutionFailed: output 'Y' of model 'dou ble%' in the server's response: expected FP32[1], got INT32[1]",
  ],
  [
    "a reply above the limit",
    (_, response) => sendResponse(response, "x".repeat(2000)),
    "ExecutionFailed: the response exceeds maxResponseSize, 1000 bytes",
  ],
  [
    "a connection that ends before the reply",
    (request) => request.socket.destroy(),
    "Unavailable: the connection to 127.0.0.1:PORT was lost: ",
  ],
  [
    "a connection that ends within the reply",
    (request, response) =>
      response.writeHead(200, { "content-length": 100 }).write("{", () => request.socket.destroy()),
    "Unavailable: the connection to 127.0.0.1:PORT was lost: ",
  ],
])("%s", async (_, handler, expected) => {
  const result = await outcome(handler, { maxResponseSize: 1000 })
  expect(String(result).slice(0, expected.length)).toBe(expected)
})

it("a server that is not there is Unavailable, with its address", async () => {
  const { url, port, ...server } = await serve(() => {})
  await server[Symbol.asyncDispose]()
  await using client = await Client.connect(Double, { url })
  await expect(client.infer({ X: 1 })).rejects.toMatchObject({
    _tag: "Unavailable",
    message: expect.stringContaining(`cannot reach 127.0.0.1:${port}: connect ECONNREFUSED`),
  })
})

it("keeps its deadline where the server does not answer, and closes the connection", async () => {
  const closed = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  await using server = await serve((request) => {
    arrived.resolve()
    request.socket.on("close", () => closed.resolve())
  })
  await using client = await Client.connect(Double, { url: server.url })
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  onTestFinished(() => void vi.useRealTimers())
  const call = expect(client.infer({ X: 1 }, { timeout: "20 seconds" })).rejects.toMatchObject({
    _tag: "DeadlineExceeded",
    message: "[request id: <id_unknown>] Deadline Exceeded",
  })
  await arrived.promise
  vi.advanceTimersByTime(20_000)
  await call
  await closed.promise
})

it("an aborted signal rejects with its reason and closes the connection", async () => {
  const closed = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  await using server = await serve((request) => {
    arrived.resolve()
    request.socket.on("close", () => closed.resolve())
  })
  await using client = await Client.connect(Double, { url: server.url })
  const controller = new AbortController()
  const call = expect(client.infer({ X: 1 }, { signal: controller.signal })).rejects.toThrow("enough")
  await arrived.promise
  controller.abort(new Error("enough"))
  await call
  await closed.promise
})

it("closing the client ends waiting calls, and later ones, with Unavailable", async () => {
  const arrived = Promise.withResolvers<void>()
  await using server = await serve(() => arrived.resolve())
  const client = await Client.connect(Double, { url: server.url })
  const call = expect(client.infer({ X: 1 })).rejects.toMatchObject({ _tag: "Unavailable" })
  await arrived.promise
  await client.close()
  await call
  await expect(client.infer({ X: 1 })).rejects.toMatchObject({ _tag: "Unavailable" })
})
