/** URLs of clients: invalid ones, and ones without a scheme, against real servers and sockets. */
import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import { Effect, Fiber } from "effect"
import * as BrowserClient from "./BrowserClient.ts"
import * as Client from "./Client.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { X: Tensor.scalar("FP32") },
}) {}

const invalid: ReadonlyArray<readonly [string, string]> = [
  ["htp://x", "it may begin with grpc://, grpcs://, http:// or https://, not htp://"],
  ["localhost", "without a scheme it needs a port: grpc://localhost, http://localhost or localhost:8000"],
  [":8000", "it has no host"],
  ["grpc://", "it has no host"],
  ["grpc://x:99999", "its port is 99999, expected 1 to 65535"],
  ["http://me:secret@x", "credentials belong in a header"],
  ["grpc://x/path", "gRPC has no path"],
]

it.each(invalid)("%s is an InvalidUrl of the layer, and of the promise", async (url, problem) => {
  const error = { _tag: "InvalidUrl", message: expect.stringContaining(problem) }
  const effect = Effect.provide(
    Effect.flatMap(Echo, ({ infer }) => infer({ X: 1 })),
    Client.layer(Echo, { url }),
  )
  expect(await Effect.runPromise(Effect.flip(effect))).toMatchObject(error)
  await expect(Client.connect(Echo, { url })).rejects.toMatchObject(error)
})

it.each([
  ["grpc://x", "A browser needs a URL that begins with http:// or https://, but grpc://x was given"],
  ["htp://x", "it may begin with grpc://"],
])("%s is an InvalidUrl in a browser", async (url, problem) => {
  const error = { _tag: "InvalidUrl", message: expect.stringContaining(problem) }
  await expect(BrowserClient.connect(Echo, { url })).rejects.toMatchObject(error)
  const effect = Effect.provide(Echo, BrowserClient.layer(Echo, { url }))
  expect(await Effect.runPromise(Effect.flip(effect))).toMatchObject(error)
})

it("a transport throws an InvalidUrl; without a scheme it is for gRPC", async () => {
  expect(() => Client.transport({ url: "http://x" })).toThrow(Client.InvalidUrl)
  expect(() => Client.transport({ url: "x:port" })).toThrow(Client.InvalidUrl)
  await Client.transport({ url: "localhost" }).close()
})

const listening = (server: Server) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return (server.address() as AddressInfo).port
    }),
    () => Effect.sync(() => void server.close()),
  )

/** Every call fails with what the server is: ModelNotFound over HTTP, Unsupported over gRPC. */
const servers: { readonly [name: string]: readonly [() => Server, string] } = {
  "a server of gRPC": [
    () =>
      createHttp2Server().on("stream", (stream: ServerHttp2Stream) =>
        stream.respond(
          { ":status": 200, "content-type": "application/grpc", "grpc-status": "12", "grpc-message": "no" },
          { endStream: true },
        ),
      ),
    "Unsupported",
  ],
  "a server of HTTP/1.1, which answers the preface of HTTP/2": [
    () => createHttpServer((_, response) => response.writeHead(404).end("{}")),
    "ModelNotFound",
  ],
  "a server of HTTP/1.1, which drops the preface of HTTP/2": [
    () => {
      const http = createHttpServer((_, response) => response.writeHead(404).end("{}"))
      return createServer((socket) =>
        socket.once("data", (bytes) => {
          if (bytes.toString("latin1").startsWith("PRI")) return socket.destroy()
          http.emit("connection", socket)
          socket.unshift(bytes)
          return socket.resume()
        }),
      )
    },
    "ModelNotFound",
  ],
}

const calls = { infer: "infer", stream: "stream" } as const

describe.each(Object.values(calls))("without a scheme, %s", (call) => {
  const failed = (client: Client.PromiseClient<typeof Echo.definition.inputs, typeof Echo.definition.outputs>) =>
    Effect.promise(async () => {
      try {
        if (call === "infer") await client.infer({ X: 1 })
        else for await (const _ of client.stream({ X: 1 }));
        return "nothing"
      } catch (error) {
        return (error as { readonly _tag: string })._tag
      }
    })

  it.live.each(Object.entries(servers))("finds %s", ([, [make, tag]]) =>
    Effect.gen(function* () {
      const port = yield* listening(make())
      const client = yield* Effect.acquireRelease(
        Effect.promise(() => Client.connect(Echo, { url: `127.0.0.1:${port}` })),
        (open) => Effect.promise(open.close),
      )
      expect(yield* Effect.all([failed(client), failed(client)], { concurrency: 2 })).toEqual([tag, tag])
      expect(yield* failed(client)).toBe(tag)
    }),
  )
})

/** The message of the first call of a client without a scheme. */
const failure = (port: number, options: Partial<Client.ClientOptions> = {}) =>
  Effect.flip(
    Effect.provide(
      Effect.flatMap(Echo, ({ infer }) => infer({ X: 1 })),
      Client.layer(Echo, { url: `127.0.0.1:${port}`, ...options } as { readonly url: string }),
    ),
  )

it.live.each<readonly [string, (socket: Socket) => void, string]>([
  [
    "expects TLS",
    (socket) => socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 10])),
    "it expects TLS; write grpcs://ADDRESS or https://ADDRESS",
  ],
  ["closes", (socket) => socket.end(), "it closed the connection; write grpc://ADDRESS or http://ADDRESS"],
  [
    "speaks neither",
    (socket) => socket.end("SSH-2.0-OpenSSH_9.9\r\n"),
    "its answer is neither HTTP/2 nor HTTP/1.1; write grpc://ADDRESS or http://ADDRESS",
  ],
])("a server that %s is Unavailable, with what to write", ([, answer, problem]) =>
  Effect.gen(function* () {
    const port = yield* listening(
      createServer((socket) => socket.on("error", () => {}).once("data", () => answer(socket))),
    )
    const address = `127.0.0.1:${port}`
    expect(yield* failure(port)).toMatchObject({
      _tag: "Unavailable",
      message: `cannot tell which protocol ${address} speaks: ${problem.replaceAll("ADDRESS", address)}`,
    })
  }),
)

it.live("a silent server is Unavailable within the connect timeout, and the next call asks again", () =>
  Effect.gen(function* () {
    const sockets: Array<Socket> = []
    const silent = createServer((socket) => sockets.push(socket))
    const port = yield* listening(silent)
    const client = yield* Effect.promise(() =>
      Client.connect(Echo, { url: `127.0.0.1:${port}`, connectTimeout: "50 millis" }),
    )
    const ask = Effect.flip(Effect.tryPromise({ try: () => client.infer({ X: 1 }), catch: (error) => error }))
    const problem = `cannot tell which protocol 127.0.0.1:${port} speaks: no answer within 50 ms; write `
    expect(yield* ask).toMatchObject({ _tag: "Unavailable", message: expect.stringContaining(problem) })
    yield* ask
    expect(sockets).toHaveLength(2)
    const waiting = yield* Effect.forkChild(ask, { startImmediately: true })
    yield* Effect.promise(client.close)
    expect(yield* Fiber.join(waiting)).toMatchObject({
      _tag: "Unavailable",
      message: expect.stringContaining("is closed"),
    })
    for (const socket of sockets) socket.destroy()
  }),
)

it.live("an unreachable server is Unavailable, as with a scheme", () =>
  Effect.gen(function* () {
    const port = yield* Effect.scoped(listening(createServer()))
    expect(yield* failure(port)).toMatchObject({
      _tag: "Unavailable",
      message: expect.stringContaining(`cannot reach 127.0.0.1:${port}: connect ECONNREFUSED`),
    })
  }),
)
