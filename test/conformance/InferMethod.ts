/** A method of calling a server: a protocol with an encoding. Requests are independent of each other. */
import { compareGrpc, compareHttp, compareStream } from "./ResponseComparison.ts"
import type { Connections } from "./Connections.ts"
import { encode as encodeGrpc } from "./GrpcEncoding.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { encode as encodeHttp } from "./HttpEncoding.ts"
import type { InferRequest, Outcome } from "./InferRequest.ts"

type Connected = Connections["Service"]

type ServerName = keyof Connected["servers"]

export interface InferMethod {
  readonly name: string
  readonly server: ServerName
  /** Sends a request at once; returns the differences between its response and the expected outcome. */
  readonly infer: (connections: Connected, request: InferRequest, expected: Outcome) => Promise<ReadonlyArray<string>>
}

/** To a server, and to the one through which gRPC goes by Connect. */
export const inferMethods = (server: ServerName, connect: ServerName): ReadonlyArray<InferMethod> => [
  overHttp(server, "HTTP JSON"),
  overHttp(server, "HTTP binary"),
  overGrpc(server, "gRPC"),
  overGrpc(connect, "gRPC through Connect"),
  overStream(server, "gRPC stream"),
  overStream(connect, "gRPC stream through Connect"),
]

const overHttp = (server: ServerName, encoding: "HTTP JSON" | "HTTP binary"): InferMethod => ({
  name: encoding,
  server,
  infer: async ({ servers }, request, expected) => {
    // A connection replies in the order of its requests.
    const connection = await HttpConnection.open(servers[server].http)
    const response = await connection.request(encodeHttp(request, encoding))
    connection.close()
    return compareHttp(request, expected, response)
  },
})

const overGrpc = (server: ServerName, name: string): InferMethod => ({
  name,
  server,
  infer: async (connections, request, expected) => {
    const connection = await connections.grpc(server)
    return compareGrpc(request, expected, await connection.call({ chunks: [encodeGrpc(request, "gRPC raw")] }))
  },
})

const overStream = (server: ServerName, name: string): InferMethod => ({
  name,
  server,
  infer: async (connections, request, expected) => {
    const connection = await connections.grpc(server)
    const call = { method: "ModelStreamInfer", chunks: [encodeGrpc(request, "gRPC stream")] }
    return compareStream(request, expected, await connection.call(call))
  },
})
