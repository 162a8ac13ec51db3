/** A way into a server: a protocol with an encoding, and which server. One request at a time, each beside the others. */
import { compareGrpc, compareHttp, compareStream } from "./Answer.ts"
import type { Connections } from "./Connections.ts"
import { encode as encodeGrpc } from "./GrpcEncoding.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { encode as encodeHttp } from "./HttpEncoding.ts"
import type { InferRequest, Outcome } from "./InferRequest.ts"

type Connected = Connections["Service"]

type Which = keyof Connected["servers"]

export interface Way {
  readonly name: string
  readonly server: Which
  /** Sends a request at once, and says what its answer has that it should not. */
  readonly ask: (connections: Connected, request: InferRequest, expected: Outcome) => Promise<ReadonlyArray<string>>
}

/** To a server, and to the one through which gRPC goes by Connect. */
export const ways = (server: Which, connect: Which): ReadonlyArray<Way> => [
  overHttp(server, "HTTP JSON"),
  overHttp(server, "HTTP binary"),
  overGrpc(server, "gRPC"),
  overGrpc(connect, "gRPC through Connect"),
  overStream(server, "gRPC stream"),
  overStream(connect, "gRPC stream through Connect"),
]

const overHttp = (server: Which, encoding: "HTTP JSON" | "HTTP binary"): Way => ({
  name: encoding,
  server,
  ask: async ({ servers }, request, expected) => {
    // A connection answers in the order in which it was asked.
    const connection = await HttpConnection.open(servers[server].http)
    const answer = await connection.request(encodeHttp(request, encoding))
    connection.close()
    return compareHttp(request, expected, answer)
  },
})

const overGrpc = (server: Which, name: string): Way => ({
  name,
  server,
  ask: async (connections, request, expected) => {
    const connection = await connections.grpc(server)
    return compareGrpc(request, expected, await connection.call({ chunks: [encodeGrpc(request, "gRPC raw")] }))
  },
})

const overStream = (server: Which, name: string): Way => ({
  name,
  server,
  ask: async (connections, request, expected) => {
    const connection = await connections.grpc(server)
    const call = { method: "ModelStreamInfer", chunks: [encodeGrpc(request, "gRPC stream")] }
    return compareStream(request, expected, await connection.call(call))
  },
})
