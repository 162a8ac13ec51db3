/**
 * A server that costs clients as little as node:http2 can, run as a child: it replies to any request with add_sub's
 * response.
 */
import { createServer, type ServerHttp2Stream } from "node:http2"
import { create, toBinary } from "@bufbuild/protobuf"
import { ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import * as GrpcReply from "./GrpcReply.ts"
import { listen } from "./Listening.ts"
import { report } from "./Reporter.ts"
import { framed } from "./framed.ts"
import { vectors } from "./Request.ts"

const bytes = (combine: (one: number, other: number) => number) => {
  const [one, other] = vectors.map(({ data }) => data)
  return new Uint8Array(Float32Array.from(one ?? [], (value, index) => combine(value, other?.[index] ?? 0)).buffer)
}

const reply = framed(
  toBinary(
    ModelInferResponseSchema,
    create(ModelInferResponseSchema, {
      modelName: "add_sub",
      modelVersion: "1",
      outputs: ["OUTPUT0", "OUTPUT1"].map((name) => ({ name, datatype: "FP32", shape: [1n, 16n] })),
      rawOutputContents: [bytes((one, other) => one + other), bytes((one, other) => one - other)],
    }),
  ),
)

const grpc = createServer()
grpc.on("stream", (stream: ServerHttp2Stream) => {
  stream.on("error", () => {})
  // A small message comes in one chunk.
  stream.once("data", () => GrpcReply.send(stream, reply))
})

report({ ports: { grpc: await listen(grpc), http: 0 } })
