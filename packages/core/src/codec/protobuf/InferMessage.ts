/**
 * Converts between wire requests and responses and the messages of gRPC's ModelInfer. Requests have raw tensors.
 * Responses have raw tensors, as from Triton, or typed contents, as from some other servers. PlainRequest.ts and
 * PlainResponse.ts read and write the common forms.
 */
import { create } from "@bufbuild/protobuf"
import { isDataType } from "../../tensor/DataType.ts"
import * as DataType from "../../tensor/DataType.ts"
import { noParameters, type Parameters } from "../../request/Request.ts"
import * as GeneralMessage from "./GeneralMessage.ts"
import * as PlainRequest from "./PlainRequest.ts"
import * as PlainResponse from "./PlainResponse.ts"
import { type integerRanges, outOfRange } from "../../tensor/IntegerRange.ts"
import { encodeElements } from "../../tensor/TypedTensor.ts"
import type { StreamResponse, WireRequest, WireResponse, WireTensor } from "../../wire/WireRequest.ts"
import {
  type InferParameter,
  type InferTensorContents,
  type ModelInferResponse_InferOutputTensor,
  type ModelInferResponse,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from "@nereid/protocol/grpc_service"

/** Allocates the given number of bytes, with arbitrary content. */
export type Allocate = (length: number) => Uint8Array

const allocateZeros: Allocate = (length) => new Uint8Array(length)

/** The bytes of a request, after `headroom` bytes that are left for the caller. */
export const encode = (request: WireRequest, headroom: number, allocate = allocateZeros): Uint8Array => {
  const wire = withSignedId(request)
  const message = allocate(headroom + PlainRequest.length(wire))
  PlainRequest.write(wire, message, headroom)
  return message
}

/** Servers take the id of a sequence as an int64_param only: one of 2^63 or more as its negative counterpart. */
const withSignedId = (wire: WireRequest): WireRequest => {
  const { sequence_id: id } = wire.parameters
  if (typeof id !== "bigint" || id < 2n ** 63n) return wire
  return { ...wire, parameters: { ...wire.parameters, sequence_id: BigInt.asIntN(64, id) } }
}

/**
 * Decodes a response.
 * @throws Error if the bytes are not a valid message, or its tensors cannot be read
 */
export const decode = (bytes: Uint8Array): WireResponse =>
  PlainResponse.read(bytes, 0, bytes.length) ?? decodeAny(bytes)

/** The same by the general codec, which reads every form. */
export const decodeAny = (bytes: Uint8Array): WireResponse =>
  response(GeneralMessage.read(ModelInferResponseSchema, bytes))

/**
 * Decodes a response of ModelStreamInfer; it has no outputs if it reports an error.
 * @throws Error if the bytes are not a valid message, or its tensors cannot be read
 */
export const decodeStreamed = (bytes: Uint8Array): StreamResponse => {
  const plain = PlainResponse.readStreamed(bytes)
  return plain === undefined ? decodeStreamedAny(bytes) : { error: "", response: plain }
}

/** The same by the general codec, which reads every form. */
export const decodeStreamedAny = (bytes: Uint8Array): StreamResponse => {
  const { errorMessage, inferResponse } = GeneralMessage.read(ModelStreamInferResponseSchema, bytes)
  return { error: errorMessage, response: response(inferResponse ?? create(ModelInferResponseSchema)) }
}

const response = (message: ModelInferResponse): WireResponse => {
  const { modelName, modelVersion, id, parameters, outputs, rawOutputContents } = message
  if (rawOutputContents.length > 0 && rawOutputContents.length !== outputs.length) {
    throw new Error(`${outputs.length} outputs have ${rawOutputContents.length} raw contents`)
  }
  return {
    modelName,
    modelVersion,
    id,
    parameters: parametersIn(parameters),
    outputs: outputs.map((output, index) => tensor(output, rawOutputContents[index])),
  }
}

const tensor = (output: ModelInferResponse_InferOutputTensor, raw: Uint8Array | undefined): WireTensor => {
  const { name, datatype, contents } = output
  const bytes = raw ?? (contents === undefined ? new Uint8Array(0) : contentsBytes(name, datatype, contents))
  return { name, datatype, shape: output.shape.map(Number), bytes }
}

/** Typed contents as the bytes of a tensor. FP16 and BF16 have no typed contents. */
const contentsBytes = (name: string, datatype: string, contents: InferTensorContents): Uint8Array => {
  if (!isDataType(datatype)) return new Uint8Array(0)
  switch (datatype) {
    case "BYTES":
      return encodeElements(contents.bytesContents)
    case "BOOL":
      return fixed(datatype, contents.boolContents.map(Number))
    case "INT8":
    case "INT16":
    case "INT32":
      return integers(name, datatype, contents.intContents)
    case "UINT8":
    case "UINT16":
    case "UINT32":
      return integers(name, datatype, contents.uintContents)
    case "INT64":
      return fixed(datatype, contents.int64Contents)
    case "UINT64":
      return fixed(datatype, contents.uint64Contents)
    case "FP32":
      return fixed(datatype, contents.fp32Contents)
    case "FP64":
      return fixed(datatype, contents.fp64Contents)
    case "FP16":
    case "BF16":
      throw new Error(`output '${name}' has datatype ${datatype}, but no raw contents`)
  }
}

const integers = (name: string, datatype: keyof typeof integerRanges, elements: ReadonlyArray<number>): Uint8Array => {
  const problem = outOfRange(datatype, elements)
  if (problem !== undefined) throw new Error(`output '${name}': ${problem}`)
  return fixed(datatype, elements)
}

const fixed = (datatype: DataType.FixedDataType, elements: ReadonlyArray<number | bigint>): Uint8Array => {
  const bytes = new Uint8Array(elements.length * (DataType.byteWidth(datatype) ?? 1))
  // Numbers for every datatype but the two of 64 bits, which come as bigints.
  const view = DataType.view(datatype, bytes.buffer, 0, elements.length) as { [index: number]: number | bigint }
  for (const [index, element] of elements.entries()) view[index] = element
  return bytes
}

const parametersIn = (parameters: { readonly [name: string]: InferParameter }): Parameters => {
  const entries = Object.entries(parameters)
  if (entries.length === 0) return noParameters
  return Object.fromEntries(
    entries.flatMap(([name, { parameterChoice }]) =>
      parameterChoice.value === undefined ? [] : [[name, parameterChoice.value]],
    ),
  )
}
