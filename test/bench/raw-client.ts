/**
 * The client baseline, run as a child: the same call written with node:http2 and protobuf-es, one stream per call on
 * one session, the tensors as typed arrays.
 */
import { type ClientHttp2Session, connect } from "node:http2"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { ModelInferRequestSchema, ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import * as Callers from "./Callers.ts"
import { report } from "./Reporter.ts"
import { framed } from "./framed.ts"
import { grpc, type Input, vectors } from "./Request.ts"

const { path, headers } = grpc("add_sub")
const requestHeaders = { ":method": "POST", ":path": path, ...headers }

const infer = (session: ClientHttp2Session, inputs: ReadonlyArray<Input>): Promise<ReadonlyArray<Float32Array>> => {
  const message = toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: "add_sub",
      inputs: inputs.map(({ name, shape }) => ({ name, datatype: "FP32", shape: shape.map(BigInt) })),
      rawInputContents: inputs.map(({ data }) => new Uint8Array(data.buffer)),
    }),
  )
  return new Promise((resolve, reject) => {
    const stream = session.request(requestHeaders)
    const chunks: Array<Buffer> = []
    let status: unknown
    stream.on("error", reject)
    stream.on("trailers", (trailers) => (status = trailers["grpc-status"]))
    stream.on("data", (chunk: Buffer) => chunks.push(chunk))
    stream.on("end", () => {
      if (status !== "0") return reject(new Error(`grpc-status ${status}`))
      const [first] = chunks
      const reply = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
      resolve(fromBinary(ModelInferResponseSchema, reply.subarray(5)).rawOutputContents.map(floats))
    })
    stream.end(framed(message))
  })
}

const floats = (bytes: Uint8Array): Float32Array =>
  bytes.byteOffset % 4 === 0
    ? new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    : new Float32Array(new Uint8Array(bytes).buffer)

report({
  run: async ({ port, concurrency, seconds }) => {
    const session = connect(`http://127.0.0.1:${port}`)
    const measured = await Callers.run(concurrency, seconds, async () => {
      const [sum, difference] = await infer(session, vectors)
      if (sum?.[0] !== 100 || difference?.[0] !== -100) throw new Error(`wrong: ${sum}, ${difference}`)
    })
    session.close()
    return measured
  },
})
