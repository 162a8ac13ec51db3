/**
 * grpc-js as a server of ModelInfer and ModelStreamInfer, which answers bytes to bytes; and node:http2 as a bad one.
 */
import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js"
import { once } from "node:events"
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"
import type { Address } from "../target/Address.ts"
import { service } from "./GrpcRequest.ts"

const bytes = (value: Buffer) => value

const method = (name: string, streams: boolean) => ({
  path: `${service}/${name}`,
  requestStream: streams,
  responseStream: streams,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
})

export interface Handlers {
  readonly unary?: (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => void
  readonly stream?: (call: ServerDuplexStream<Buffer, Buffer>) => void
}

export const serve = async ({ unary, stream }: Handlers): Promise<Address> => {
  const server = new Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 })
  if (unary !== undefined) server.addService({ ModelInfer: method("ModelInfer", false) }, { ModelInfer: unary })
  if (stream !== undefined) {
    server.addService({ ModelStreamInfer: method("ModelStreamInfer", true) }, { ModelStreamInfer: stream })
  }
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
    error === null ? resolve(port) : reject(error),
  )
  const port = await promise
  onTestFinished(() => server.forceShutdown())
  return { host: "127.0.0.1", port }
}

/** Serves HTTP/2 streams with any handler. */
export const serveHttp2 = async (
  onStream: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
): Promise<Address> => {
  const server = createServer()
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {})
    onStream(stream, headers)
  })
  server.on("sessionError", () => {})
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => void server.close())
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port }
}

/** A reply of a gRPC server, as its parts. */
export const reply = (
  stream: ServerHttp2Stream,
  { status = 200, type = "application/grpc", body = Buffer.alloc(0), trailers = {} }: Partial<RawReply>,
): void => {
  stream.respond({ ":status": status, "content-type": type }, { waitForTrailers: true })
  stream.on("wantTrailers", () => (trailers === undefined ? stream.close() : stream.sendTrailers(trailers)))
  stream.end(body)
}

export interface RawReply {
  readonly status: number
  readonly type: string
  readonly body: Buffer
  readonly trailers: Record<string, string>
}
