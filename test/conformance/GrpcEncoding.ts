/** A neutral request as a ModelInferRequest, and messages as gRPC frames. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import {
  type InferTensorContentsSchema,
  type InferParameterSchema,
  type ModelInferRequest,
  ModelInferRequestSchema,
} from "@nereid/protocol/grpc_service"
import { bytesOf, contentOf } from "./Elements.ts"
import type { Encoding, InferRequest, Parameter, Parameters, Tensor } from "./InferRequest.ts"

export type GrpcEncoding = Extract<Encoding, `gRPC ${string}`>

export const message = (request: InferRequest, encoding: GrpcEncoding): ModelInferRequest => {
  const typed = encoding === "gRPC contents"
  return create(ModelInferRequestSchema, {
    modelName: request.model,
    modelVersion: request.version ?? "",
    id: request.id ?? "",
    parameters: parameters(request.parameters),
    inputs: request.inputs.map((input) => ({
      name: input.name,
      datatype: input.datatype,
      shape: input.shape.map(BigInt),
      ...(typed ? { contents: contents(input) } : {}),
    })),
    outputs: (request.outputs ?? []).map((output) => ({
      name: output.name,
      parameters: parameters(output.parameters),
    })),
    rawInputContents: typed ? [] : request.inputs.map(bytesOf),
  })
}

export const encode = (request: InferRequest, encoding: GrpcEncoding): Uint8Array =>
  frame(toBinary(ModelInferRequestSchema, message(request, encoding)))

/** A message with its prefix: not compressed, and its length. */
export const frame = (message: Uint8Array, flag = 0): Uint8Array => {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt8(flag)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

type Contents = MessageInitShape<typeof InferTensorContentsSchema>

const contents = ({ datatype, elements }: Tensor): Contents => {
  const numbers = () => elements.map(Number)
  switch (datatype) {
    case "BOOL":
      return { boolContents: elements.map(Boolean) }
    case "INT8":
    case "INT16":
    case "INT32":
      return { intContents: numbers() }
    case "INT64":
      return { int64Contents: elements.map((element) => BigInt(String(element))) }
    case "UINT8":
    case "UINT16":
    case "UINT32":
      return { uintContents: numbers() }
    case "UINT64":
      return { uint64Contents: elements.map((element) => BigInt(String(element))) }
    case "FP64":
      return { fp64Contents: numbers() }
    case "BYTES":
      return { bytesContents: elements.map(contentOf) }
    default:
      return { fp32Contents: numbers() }
  }
}

const parameters = (all: Parameters = {}): { readonly [name: string]: MessageInitShape<typeof InferParameterSchema> } =>
  Object.fromEntries(Object.entries(all).map(([name, value]) => [name, { parameterChoice: choice(value) }]))

const choice = (value: Parameter) => {
  switch (typeof value) {
    case "boolean":
      return { case: "boolParam" as const, value }
    case "bigint":
      return { case: "int64Param" as const, value }
    case "number":
      return { case: "doubleParam" as const, value }
    default:
      return { case: "stringParam" as const, value }
  }
}
