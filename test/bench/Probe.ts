/**
 * One request of each kind through Node's own clients, before the load: it says in full what a refusal was, checks the
 * answer itself where it is known, and gives the size that every later reply must have.
 */
import { request as requestHttp } from "node:http"
import { connect } from "node:http2"
import { fromBinary } from "@bufbuild/protobuf"
import { ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import type { Ports } from "./Reporter.ts"
import type { Request } from "./Request.ts"

/** Bytes of the reply: of the message with its prefix, or of the body. */
export const replyBytes = async (ports: Ports, request: Request): Promise<number> => {
  const reply = request.protocol === "gRPC" ? await askGrpc(ports.grpc, request) : await askHttp(ports.http, request)
  const first = firstValues(request, reply)
  const expected = request.model === "add_sub" ? [100, -100] : undefined
  if (expected !== undefined && first.join() !== expected.join()) {
    throw new Error(
      `add_sub over ${request.protocol} begins its outputs with ${first.join()}, expected ${expected.join()}`,
    )
  }
  return reply.length
}

const askGrpc = async (port: number, { path, headers, body }: Request): Promise<Buffer> => {
  const session = connect(`http://127.0.0.1:${port}`)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const stream = session.request({ ":method": "POST", ":path": path, ...headers })
  const chunks: Array<Buffer> = []
  const check = (answer: Readonly<Record<string, unknown>>) => {
    const status = answer["grpc-status"]
    if (status !== undefined && status !== "0") reject(new Error(`grpc-status ${status}: ${answer["grpc-message"]}`))
  }
  stream.on("response", check).on("trailers", check).on("error", reject)
  stream.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => resolve(Buffer.concat(chunks)))
  stream.end(body)
  session.on("error", reject)
  return promise.finally(() => session.close())
}

const askHttp = (port: number, { path, headers, body }: Request): Promise<Buffer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const asked = requestHttp({ port, host: "127.0.0.1", path, method: "POST", headers }, (response) => {
    const chunks: Array<Buffer> = []
    response.on("data", (chunk: Buffer) => chunks.push(chunk))
    response.on("end", () => {
      const reply = Buffer.concat(chunks)
      if (response.statusCode === 200) resolve(reply)
      else reject(new Error(`HTTP ${response.statusCode}: ${reply.toString()}`))
    })
  })
  asked.on("error", reject).end(body)
  return promise
}

/** The first value of each output. HTTP's come behind the document, one behind the other and of the same size. */
const firstValues = ({ protocol }: Request, reply: Buffer): ReadonlyArray<number> => {
  if (protocol === "gRPC") {
    const { rawOutputContents } = fromBinary(ModelInferResponseSchema, reply.subarray(5))
    return rawOutputContents.map((raw) => new DataView(raw.buffer, raw.byteOffset, raw.byteLength).getFloat32(0, true))
  }
  return [reply.readFloatLE(reply.length - 128), reply.readFloatLE(reply.length - 64)]
}
