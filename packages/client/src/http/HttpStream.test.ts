/** Server-sent events from a scripted server, which can behave like servers of other vendors. */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Schema } from "effect"
import { expect, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import * as Client from "../Client.ts"

class Words extends Model.Service<Words>()("words", {
  inputs: { PROMPT: Tensor.utf8(), SEED: Tensor.optional(Tensor.INT64(2)) },
  outputs: { WORD: Tensor.utf8(), SCORES: Tensor.FP32("n") },
  parameters: { limit: Schema.optionalKey(Schema.Int) },
}) {}

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => unknown

const serve = async (handler: Handler) => {
  const server = createServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk)
    await handler(request, response, Buffer.concat(chunks).toString())
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Reads a stream from a server with this handler. Returns the words, and the failure if there is one. */
const read = async (handler: Handler, options: Partial<Client.ClientOptions> = {}) => {
  await using server = await serve(handler)
  await using client = await Client.connect(Words, { url: server.url, ...options })
  const seen: Array<string> = []
  try {
    for await (const { WORD, SCORES } of client.stream({ PROMPT: "a" })) seen.push(`${WORD} ${SCORES.data.join(" ")}`)
  } catch (error) {
    seen.push(String(error).replace(server.url.slice(7), "HOST"))
  }
  return seen
}

const event = (WORD: string, ...SCORES: ReadonlyArray<number>) =>
  `data: ${JSON.stringify({ model_name: "words", WORD, SCORES })}\n\n`

it("sends requests of the generate extension, with ids and parameters", async () => {
  let received: unknown
  await using server = await serve((request, response, body) => {
    received = [request.url, request.headers["content-type"], JSON.parse(body)]
    response.end(event("b", 1, 2))
  })
  await using client = await Client.connect(Words, { url: server.url, version: 3 })
  const SEED = Tensor.make("INT64", [2], BigInt64Array.of(1n, 2n))
  const [one] = await Array.fromAsync(client.stream({ PROMPT: 'ä "b"', SEED }, { id: "7", parameters: { limit: 9 } }))
  expect(one).toEqual({ WORD: "b", SCORES: Tensor.make("FP32", [2], Float32Array.of(1, 2)) })
  expect(received).toEqual([
    "/v2/models/words/versions/3/generate_stream",
    "application/json",
    { id: "7", PROMPT: 'ä "b"', SEED: [1, 2], parameters: { limit: 9 } },
  ])
})

it("assembles events from any chunks, and skips other lines", async () => {
  const all = `: a comment\n${event("b")}\n${event("ß", 1)}event: more\n${event("c", 1, 2)}`
  for (const size of [1, 7, all.length]) {
    const bytes = Buffer.from(all)
    const got = await read(async (_, response) => {
      for (let at = 0; at < bytes.length; at += size) {
        await new Promise<void>((resolve) => response.write(bytes.subarray(at, at + size), () => resolve()))
      }
      response.end()
    })
    expect(got).toEqual(["b ", "ß 1", "c 1 2"])
  }
})

const odd: ReadonlyArray<readonly [string, Handler, ReadonlyArray<unknown>]> = [
  [
    "a refusal",
    (_, response) => response.writeHead(400, { "nereid-error": "InvalidRequest" }).end('{"error":"no such thing"}'),
    ["InvalidRequest: no such thing"],
  ],
  [
    "a failure as the first event",
    (_, response) => response.writeHead(503).end('data: {"error":"Exceeds maximum queue size"}\n\n'),
    ["QueueFull: Exceeds maximum queue size"],
  ],
  [
    "a failure as a later event",
    (_, response) => response.end(`${event("b")}data: {"error":"out of order"}\n\n${event("c")}`),
    ["b ", "ExecutionFailed: out of order"],
  ],
  [
    "a proxy's page",
    (_, response) => response.writeHead(502).end("<html>"),
    ["Unavailable: the server answered with HTTP status 502"],
  ],
  [
    "what is no JSON",
    (_, response) => response.end("data: {no\n\n"),
    [expect.stringMatching(/^ExecutionFailed: cannot decode the server's response: /)],
  ],
  [
    "a missing output",
    (_, response) => response.end('data: {"WORD":"b"}\n\n'),
    [expect.stringMatching(/^ExecutionFailed: output 'SCORES' of model 'words' in the server's response: is missing/)],
  ],
  [
    "an event beyond the limit",
    (_, response) => response.end(`data: ${"x".repeat(3000)}`),
    ["ExecutionFailed: a response exceeds maxResponseSize, 1000 bytes"],
  ],
  [
    "the end of the connection",
    (_, response) => response.write(event("b"), () => response.destroy()),
    ["b ", expect.stringMatching(/^Unavailable: /)],
  ],
]

it.each(odd)("%s ends it with a failure", async (_, handler, expected) => {
  expect(await read(handler, { maxResponseSize: 1000 })).toEqual(expected)
})
