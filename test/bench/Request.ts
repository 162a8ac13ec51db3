/**
 * The requests of the benchmark, as bytes that are made once: a `ModelInfer` message behind its gRPC prefix, and the same
 * tensors as an HTTP body with binary data. Written from the protocol alone, not with the code that is measured.
 */
import { create, toBinary } from "@bufbuild/protobuf"
import { GRPCInferenceService, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"

export interface Request {
  readonly model: string
  readonly protocol: "gRPC" | "HTTP"
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

interface Input {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly data: Float32Array
}

const vector = (name: string, from: number): Input => ({
  name,
  shape: [1, 16],
  data: Float32Array.from({ length: 16 }, (_, index) => from + index),
})

/** A stroke like a 1: what is in the picture does not change what it costs. */
const picture: Input = {
  name: "image",
  shape: [1, 1, 28, 28],
  data: Float32Array.from({ length: 28 * 28 }, (_, index) => ([13, 14].includes(index % 28) ? 1 : 0)),
}

const models: Readonly<Record<string, ReadonlyArray<Input>>> = {
  add_sub: [vector("INPUT0", 0), vector("INPUT1", 100)],
  digits: [picture],
}

const grpc = (model: string, inputs: ReadonlyArray<Input>): Request => {
  const message = toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: model,
      inputs: inputs.map(({ name, shape }) => ({ name, datatype: "FP32", shape: shape.map(BigInt) })),
      rawInputContents: inputs.map(({ data }) => new Uint8Array(data.buffer)),
    }),
  )
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return {
    model,
    protocol: "gRPC",
    path: `/${GRPCInferenceService.typeName}/${GRPCInferenceService.method.modelInfer.name}`,
    headers: { "content-type": "application/grpc", te: "trailers" },
    body: Buffer.concat([prefix, message]),
  }
}

const http = (model: string, inputs: ReadonlyArray<Input>): Request => {
  const document = Buffer.from(
    JSON.stringify({
      inputs: inputs.map(({ name, shape, data }) => ({
        name,
        datatype: "FP32",
        shape,
        parameters: { binary_data_size: data.byteLength },
      })),
      parameters: { binary_data_output: true },
    }),
  )
  return {
    model,
    protocol: "HTTP",
    path: `/v2/models/${model}/infer`,
    headers: {
      "content-type": "application/octet-stream",
      "inference-header-content-length": String(document.length),
    },
    body: Buffer.concat([document, ...inputs.map(({ data }) => new Uint8Array(data.buffer))]),
  }
}

export const requests: ReadonlyArray<Request> = Object.entries(models).flatMap(([model, inputs]) => [
  grpc(model, inputs),
  http(model, inputs),
])

/** The same bytes for echo.ts, whose path says how many come and how many go back. */
export const echoed = (request: Request, replyBytes: number): Request => ({
  ...request,
  path: `/${request.body.length}/${replyBytes}`,
})
