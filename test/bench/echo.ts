/**
 * The echo baseline, run as a child: bare node:http2 and node:http servers. They receive a body of the size that the
 * path gives first, and answer with the number of bytes that it gives second. Over gRPC a body of several chunks is
 * joined by one copy, which any reader requires; over HTTP it is not.
 */
import { createServer as createHttp } from "node:http"
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2"
import * as GrpcReply from "./GrpcReply.ts"
import { listen } from "./Listening.ts"
import { report } from "./Reporter.ts"
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import { framed } from "./framed.ts"

interface Exchange {
  readonly expected: number
  readonly reply: Buffer
  /** For bodies of several chunks, used again and again. */
  readonly bodies: Array<Buffer>
}

/** `/<bytes in>/<bytes out>` */
const exchange = (path: string): Exchange => {
  const known = paths.get(path)
  if (known !== undefined) return known
  const [expected = 0, size = 0] = path.slice(1).split("/").map(Number)
  // One whole message of gRPC; what callers of HTTP read does not matter.
  const made = { expected, reply: framed(Buffer.alloc(size - prefixLength)), bodies: [] }
  paths.set(path, made)
  return made
}
const paths = new Map<string, Exchange>()

const grpc = createHttp2({ settings: { initialWindowSize: 4 * 2 ** 20 } })
grpc.on("session", (session) => session.setLocalWindowSize(16 * 2 ** 20))
grpc.on("stream", (stream: ServerHttp2Stream, { ":path": path = "" }) => {
  const { expected, reply, bodies } = exchange(path)
  let received = 0
  let body: Buffer | undefined
  stream.on("error", noop)
  stream.on("data", (chunk: Buffer) => {
    if (chunk.length === expected) return GrpcReply.send(stream, reply)
    body ??= bodies.pop() ?? Buffer.allocUnsafeSlow(expected)
    body.set(chunk, received)
    received += chunk.length
    if (received < expected) return
    bodies.push(body)
    GrpcReply.send(stream, reply)
  })
})
const noop = () => {}

const http = createHttp((request, response) => {
  const { expected, reply } = exchange(request.url ?? "")
  let received = 0
  request.on("data", (chunk: Buffer) => {
    received += chunk.length
    if (received < expected) return
    response.writeHead(200, ["content-type", "application/octet-stream", "content-length", String(reply.length)])
    response.end(reply)
  })
})

report({ ports: { grpc: await listen(grpc), http: await listen(http) } })
