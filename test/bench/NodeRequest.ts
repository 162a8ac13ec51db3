/**
 * One request through Node's own clients, before the load: its failure has the full reason, and its response has the
 * size that every later one must have.
 */
import { request as requestHttp } from "node:http"
import { connect } from "node:http2"
import { prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import { framed } from "./framed.ts"
import type { Request } from "./Request.ts"

/** The message of the answer. */
export const grpc = async (port: number, { path, headers, body }: Request): Promise<Buffer> => {
  const session = connect(`http://127.0.0.1:${port}`)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const stream = session.request({ ":method": "POST", ":path": path, ...headers })
  const chunks: Array<Buffer> = []
  const check = (response: Readonly<Record<string, unknown>>) => {
    const status = response["grpc-status"]
    if (status !== undefined && status !== "0") reject(new Error(`grpc-status ${status}: ${response["grpc-message"]}`))
  }
  stream.on("response", check).on("trailers", check).on("error", reject)
  stream
    .on("data", (chunk: Buffer) => chunks.push(chunk))
    .on("end", () => resolve(Buffer.concat(chunks).subarray(prefixLength)))
  stream.end(framed(body))
  session.on("error", reject)
  return promise.finally(() => session.close())
}

/** The body of the answer. */
export const http = (port: number, { path, headers, body }: Request): Promise<Buffer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const request = requestHttp({ port, host: "127.0.0.1", path, method: "POST", headers }, (response) => {
    const chunks: Array<Buffer> = []
    response.on("data", (chunk: Buffer) => chunks.push(chunk))
    response.on("end", () => {
      const reply = Buffer.concat(chunks)
      if (response.statusCode === 200) resolve(reply)
      else reject(new Error(`HTTP ${response.statusCode}: ${reply.toString()}`))
    })
  })
  request.on("error", reject).end(body)
  return promise
}
