/**
 * Clients in their program: options that are refused at once, and a program that can exit. GrpcChannel.test.ts,
 * HttpChannel.test.ts and test/client-server.test.ts cover calls.
 */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import { createServer, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo, Server } from "node:net"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import * as Client from "./Client.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { X: Tensor.scalar("FP32") },
}) {}

it.each<[Partial<Client.ClientOptions>, string]>([
  [{ maxInFlight: 0 }, "maxInFlight must be an integer of at least 1, but 0 was given"],
  [{ maxResponseSize: 1.5 }, "maxResponseSize must be an integer of at least 1, but 1.5 was given"],
  [{ headers: { "bad name": "x" } }, "bad name"],
  [{ headers: { name: "a\nb" } }, "is an invalid header value"],
])("%j is refused", async (options, problem) => {
  const all = { url: "grpc://models", ...options }
  expect(() => Client.layer(Echo, all)).toThrow(TypeError)
  expect(() => Client.layer(Echo, all)).toThrow(problem)
  await expect(Client.connect(Echo, all)).rejects.toThrow(problem)
})

const servers: { readonly [scheme: string]: () => Server } = {
  grpc: () =>
    createServer().on("stream", (stream: ServerHttp2Stream) =>
      stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "5" }, { endStream: true }),
    ),
  http: () => createHttpServer((_, response) => response.writeHead(404).end()),
}

const urls: ReadonlyArray<readonly [string, (url: string) => object]> = [
  ["one server", (url) => ({ url })],
  ["replicas with health checks", (url) => ({ url: [url], replicas: { health: true } })],
]

it.each(
  urls.flatMap(([name, options]) =>
    Object.entries(servers).map(([scheme, make]) => [scheme, name, make, options] as const),
  ),
)("%s, %s: a client that is not closed does not keep its program alive", async (scheme, _, make, options) => {
  const server = make().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const program = `
    import { Client } from "@nereid/client"
    import { Model, Tensor } from "@nereid/core"
    const Echo = Model.Service()("echo", { inputs: { X: Tensor.scalar("FP32") }, outputs: { X: Tensor.scalar("FP32") } })
    const client = await Client.connect(Echo, ${JSON.stringify(options(`${scheme}://127.0.0.1:${port}`))})
    console.log(await client.infer({ X: 1 }).catch((error) => error._tag))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
  })
  expect(stdout).toBe("ModelNotFound\n")
  server.close()
})
