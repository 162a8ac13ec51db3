/**
 * The baseline of gRPC for Node, run as a child: add_sub on grpc-js as its documentation has it, with the messages of
 * our .proto file through @grpc/proto-loader, that is protobufjs.
 */
import { type handleBidiStreamingCall, type handleUnaryCall, Server, ServerCredentials } from "@grpc/grpc-js"
import { loadSync } from "@grpc/proto-loader"
import { fileURLToPath } from "node:url"
import { report } from "./Reporter.ts"

interface InferRequest {
  readonly model_name: string
  readonly id: string
  readonly inputs: ReadonlyArray<{ readonly name: string; readonly shape: ReadonlyArray<number> }>
  readonly raw_input_contents: ReadonlyArray<Buffer>
}

interface InferResponse {
  readonly model_name: string
  readonly model_version: string
  readonly id: string
  readonly outputs: ReadonlyArray<{
    readonly name: string
    readonly datatype: string
    readonly shape: ReadonlyArray<number>
  }>
  readonly raw_output_contents: ReadonlyArray<Buffer>
}

const floats = (bytes: Buffer = Buffer.alloc(0)): Float32Array =>
  bytes.byteOffset % 4 === 0
    ? new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    : new Float32Array(new Uint8Array(bytes).buffer)

const bytes = ({ buffer, byteOffset, byteLength }: Float32Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

const addSub = ({ model_name, id, inputs, raw_input_contents: [one, other] }: InferRequest): InferResponse => {
  const [a, b] = [floats(one), floats(other)]
  const sum = new Float32Array(a.length)
  const difference = new Float32Array(a.length)
  for (let index = 0; index < a.length; index++) {
    sum[index] = (a[index] ?? 0) + (b[index] ?? 0)
    difference[index] = (a[index] ?? 0) - (b[index] ?? 0)
  }
  const shape = inputs[0]?.shape ?? []
  return {
    model_name,
    model_version: "1",
    id,
    outputs: [
      { name: "OUTPUT0", datatype: "FP32", shape },
      { name: "OUTPUT1", datatype: "FP32", shape },
    ],
    raw_output_contents: [bytes(sum), bytes(difference)],
  }
}

const unary: handleUnaryCall<InferRequest, InferResponse> = ({ request }, reply) => reply(null, addSub(request))

const stream: handleBidiStreamingCall<InferRequest, { readonly infer_response: InferResponse }> = (call) => {
  call.on("data", (request: InferRequest) => call.write({ infer_response: addSub(request) }))
  call.on("end", () => call.end())
  call.on("error", () => {})
}

const definition = loadSync("inference/grpc_service.proto", {
  includeDirs: [fileURLToPath(new URL("../../proto", import.meta.url))],
  keepCase: true,
  longs: Number,
})
const service = definition["inference.GRPCInferenceService"]
if (service === undefined || "format" in service) throw new Error("The .proto file has no service. This is a bug.")

const server = new Server()
server.addService(service, { ModelInfer: unary, ModelStreamInfer: stream })
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error
  report({ ports: { grpc: port, http: 0 } })
})
