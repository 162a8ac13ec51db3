/**
 * The requests of the benchmark, as bytes that are made once: a `ModelInfer` message, and the same tensors as an HTTP
 * body with binary data or as JSON. Written from the protocol alone, not with the code that is measured.
 */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import type { Delay } from "./models.ts"
import { GRPCInferenceService, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"

export interface Request {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Of gRPC the message, without its prefix. */
  readonly body: Buffer
}

export interface Input {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly data: Float32Array<ArrayBuffer>
}

const vector = (name: string, from: number): Input => ({
  name,
  shape: [1, 16],
  data: Float32Array.from({ length: 16 }, (_, index) => from + index),
})

export const vectors = [vector("INPUT0", 0), vector("INPUT1", 100)]

/** A stroke like a 1; the cost does not depend on the content of the picture. */
const digit: Input = {
  name: "image",
  shape: [1, 1, 28, 28],
  data: Float32Array.from({ length: 28 * 28 }, (_, index) => ([13, 14].includes(index % 28) ? 1 : 0)),
}

/** Values with all the digits that a float has, as those of a normalized picture. */
const picture: Input = {
  name: "image",
  shape: [1, 3, 224, 224],
  data: Float32Array.from({ length: 3 * 224 * 224 }, (_, index) => 2 * Math.sin(index + 1)),
}

type Deep = "steady" | "digits" | "echo"

export const inputs: Readonly<
  Record<
    | "add_sub"
    | "add_sub_sequence"
    | "digits"
    | "glance"
    | "mirror"
    | "held"
    | "steady"
    | `deep_${Deep}`
    | `waiting_${Delay}`,
    ReadonlyArray<Input>
  >
> = {
  add_sub: vectors,
  add_sub_sequence: vectors,
  digits: [digit],
  glance: [picture],
  mirror: [picture],
  held: vectors,
  steady: vectors,
  deep_steady: vectors,
  deep_digits: [digit],
  deep_echo: vectors,
  waiting_0: vectors,
  waiting_2: vectors,
  waiting_5: vectors,
}

export type ModelName = keyof typeof inputs

export const isModelName = (name: string): name is ModelName => Object.hasOwn(inputs, name)

const grpcCall = (
  rpc: "modelInfer" | "modelStreamInfer",
  model: ModelName,
  id: string,
  parameters: NonNullable<MessageInitShape<typeof ModelInferRequestSchema>["parameters"]> = {},
): Request => {
  const message = toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: model,
      id,
      parameters,
      inputs: inputs[model].map(({ name, shape }) => ({ name, datatype: "FP32", shape: shape.map(BigInt) })),
      rawInputContents: inputs[model].map(({ data }) => new Uint8Array(data.buffer)),
    }),
  )
  return {
    path: `/${GRPCInferenceService.typeName}/${GRPCInferenceService.method[rpc].name}`,
    headers: { "content-type": "application/grpc", te: "trailers" },
    body: Buffer.from(message),
  }
}

export const grpc = (model: ModelName): Request => grpcCall("modelInfer", model, "")

export type Position = "start" | "middle" | "end"

/** A request of a sequence. */
export const sequence = (id: number, position: Position): Request =>
  grpcCall("modelInfer", "add_sub_sequence", "", {
    sequence_id: { parameterChoice: { case: "int64Param", value: BigInt(id) } },
    ...(position !== "middle" && { [`sequence_${position}`]: { parameterChoice: { case: "boolParam", value: true } } }),
  })

export const grpcStream = (model: ModelName, id: string): Request => grpcCall("modelStreamInfer", model, id)

export const binary = (model: ModelName): Request => {
  const document = Buffer.from(
    JSON.stringify({
      inputs: inputs[model].map(({ name, shape, data }) => ({
        name,
        datatype: "FP32",
        shape,
        parameters: { binary_data_size: data.byteLength },
      })),
      parameters: { binary_data_output: true },
    }),
  )
  return {
    path: httpPath(model),
    headers: {
      "content-type": "application/octet-stream",
      "inference-header-content-length": String(document.length),
    },
    body: Buffer.concat([document, ...inputs[model].map(({ data }) => new Uint8Array(data.buffer))]),
  }
}

/** Numbers as clients write them that have no shorter way: the digits of the double that a float is. */
export const json = (model: ModelName): Request => ({
  path: httpPath(model),
  headers: { "content-type": "application/json" },
  body: Buffer.from(
    JSON.stringify({
      inputs: inputs[model].map(({ name, shape, data }) => ({ name, datatype: "FP32", shape, data: [...data] })),
    }),
  ),
})

/** A stream of `count` tokens as server-sent events. */
export const events = (count: number): Request => ({
  path: "/v2/models/tokens/generate_stream",
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify({ COUNT: count })),
})

/** A text for the pipeline of examples/sentiment. */
export const text = (text: string): Request => ({
  path: "/v2/models/sentiment/infer",
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify({ inputs: [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: [text] }] })),
})

const httpPath = (model: ModelName): string => `/v2/models/${model}/infer`
