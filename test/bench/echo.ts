/**
 * The baseline, run as a child: bare node:http2 and node:http servers that take a body of the size that the path gives
 * first and answer with as many bytes as it gives second. What a server on them could reach if it did nothing at all.
 */
import { createServer as createHttp } from "node:http"
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo, Server } from "node:net"
import { report } from "./Reporter.ts"

/** `/<bytes in>/<bytes out>` */
const sizes = (path: string): { readonly expected: number; readonly reply: Buffer } => {
  const known = paths.get(path)
  if (known !== undefined) return known
  const [expected = 0, size = 0] = path.slice(1).split("/").map(Number)
  const made = { expected, reply: Buffer.alloc(size) }
  paths.set(path, made)
  return made
}
const paths = new Map<string, ReturnType<typeof sizes>>()

const grpc = createHttp2({ settings: { initialWindowSize: 4 * 2 ** 20 } })
grpc.on("session", (session) => session.setLocalWindowSize(16 * 2 ** 20))
grpc.on("stream", (stream: ServerHttp2Stream, headers) => {
  const { expected, reply } = sizes(headers[":path"] ?? "")
  let received = 0
  stream.on("error", () => {})
  stream.on("data", (chunk: Uint8Array) => {
    received += chunk.length
    if (received < expected) return
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }))
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true })
    stream.end(reply)
  })
})

const http = createHttp((request, response) => {
  const { expected, reply } = sizes(request.url ?? "")
  let received = 0
  request.on("data", (chunk: Uint8Array) => {
    received += chunk.length
    if (received < expected) return
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": reply.length }).end(reply)
  })
})

const listen = (server: Server): Promise<number> => {
  const { promise, resolve } = Promise.withResolvers<number>()
  server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  return promise
}

report({ grpc: await listen(grpc), http: await listen(http) }, [])
