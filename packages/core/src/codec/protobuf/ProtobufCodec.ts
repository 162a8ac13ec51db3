/**
 * The protobuf form of an inference: decodes bytes or messages to a WireRequest, and encodes a WireResponse. Pure.
 * Validation.ts checks requests against a model; frames, status codes and sockets belong to the transports.
 *
 * PlainRequest.ts and PlainResponse.ts handle the common forms; all other requests are decoded as messages. Raw tensors
 * remain views on the received bytes. Typed `contents` become the bytes of a raw tensor.
 */
import { create } from "@bufbuild/protobuf"
import { Result } from "effect"
import {
  type InferParameter,
  InferParameterSchema,
  type InferTensorContents,
  type ModelInferRequest,
  type ModelInferRequest_InferInputTensor as InputTensor,
  ModelInferRequestSchema,
  type ModelInferResponse,
  ModelInferResponse_InferOutputTensorSchema,
  ModelInferResponseSchema,
  type ModelStreamInferResponse,
  ModelStreamInferResponseSchema,
} from "@nereid/protocol/grpc_service"
import { type InferenceError, InvalidRequest, MalformedRequest } from "../../error/InferenceError.ts"
import type { Parameter, Parameters } from "../../request/Request.ts"
import { noParameters } from "../../request/Request.ts"
import * as KnownParameters from "../../wire/KnownParameters.ts"
import * as GeneralMessage from "./GeneralMessage.ts"
import * as PlainRequest from "./PlainRequest.ts"
import * as PlainResponse from "./PlainResponse.ts"
import * as RegionReference from "../../wire/RegionReference.ts"
import { outOfRange } from "../../tensor/IntegerRange.ts"
import { encodeElements } from "../../tensor/TypedTensor.ts"
import type { RequestedOutput, StreamResponse, WireRequest, WireResponse, WireTensor } from "../../wire/WireRequest.ts"
import { errorMessage } from "../../error/ErrorMessage.ts"

/**
 * The ModelInferRequest from `start` to `end`. Its raw tensors are views on the bytes, which therefore must not be
 * reused.
 */
export const decode = (
  bytes: Uint8Array,
  start = 0,
  end = bytes.length,
): Result.Result<WireRequest, InvalidRequest> => {
  const request = PlainRequest.read(bytes, start, end)
  if (request !== undefined) return Result.succeed(request)
  const message = parse(bytes, start, end)
  if (Result.isSuccess(message)) return fromMessage(message.success)
  return Result.fail(new InvalidRequest({ message: message.failure }))
}

/** A request on a stream. The response to an invalid one has its id. */
export interface StreamRequest {
  readonly id: string
  readonly request: Result.Result<WireRequest, InvalidRequest>
}

/** The same as one of many on a stream, which bytes that are no message end. */
export const decodeStream = (
  bytes: Uint8Array,
  start: number,
  end: number,
): Result.Result<StreamRequest, MalformedRequest> => {
  const request = PlainRequest.read(bytes, start, end)
  if (request !== undefined) return Result.succeed({ id: request.id, request: Result.succeed(request) })
  const message = parse(bytes, start, end)
  if (Result.isSuccess(message)) return Result.succeed(fromStreamMessage(message.success))
  return Result.fail(new MalformedRequest({ message: message.failure }))
}

/** Fails in words. */
const parse = (bytes: Uint8Array, start: number, end: number): Result.Result<ModelInferRequest, string> => {
  // A Uint8Array, because a Buffer's slice() does not copy, and receivers of a tensor rely on the copy.
  const plain = new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start)
  return Result.try({
    try: () => GeneralMessage.read(ModelInferRequestSchema, plain),
    catch: (cause) => `failed to parse ModelInferRequest: ${errorMessage(cause)}`,
  })
}

/** Allocates the given number of bytes, with arbitrary content. */
export type Allocate = (length: number) => Uint8Array<ArrayBuffer>

const allocateZeros: Allocate = (length) => new Uint8Array(length)

/**
 * The bytes of a ModelInferResponse, in a buffer of exactly their size, after `headroom` bytes that are left for the
 * caller: a gRPC frame's prefix goes there without another copy of the tensors.
 */
export const encode = (response: WireResponse, headroom = 0, allocate = allocateZeros): Uint8Array<ArrayBuffer> => {
  const buffer = allocate(headroom + PlainResponse.length(response))
  PlainResponse.write(response, buffer, headroom)
  return buffer
}

/** Of a ModelStreamInferResponse. */
export const streamLength = PlainResponse.streamLength

/** Writes a stream response from `position` on, and returns the end position. */
export const writeStream = PlainResponse.writeStream

/** A response of a stream, with a parameter for whether it is the last of its request. */
export const streamResponse = (
  id: string,
  outcome: Result.Result<WireResponse, InferenceError>,
  isFinal: boolean,
): StreamResponse => {
  const failed = Result.isFailure(outcome)
  const response = failed ? { ...noResponse, id } : outcome.success
  const { modelName, modelVersion, outputs, release } = response
  const finality = isFinal ? final : further
  const parameters = response.parameters === noParameters ? finality : { ...response.parameters, ...finality }
  return {
    error: failed ? outcome.failure.message : "",
    response: { modelName, modelVersion, id: response.id, parameters, outputs, ...(release && { release }) },
  }
}

const noResponse: WireResponse = { modelName: "", modelVersion: "", id: "", parameters: noParameters, outputs: [] }
const final: Parameters = { [KnownParameters.finalResponse]: true }
const further: Parameters = { [KnownParameters.finalResponse]: false }

export const fromStreamMessage = (message: ModelInferRequest): StreamRequest => ({
  id: message.id,
  request: fromMessage(message),
})

export const fromMessage = (message: ModelInferRequest): Result.Result<WireRequest, InvalidRequest> => {
  const { modelName } = message
  const parameters = readParameters(message.parameters)
  if (Result.isFailure(parameters)) return Result.fail(parameters.failure)

  const inputs: Array<WireTensor> = []
  /** Inputs that are in no region; of these there are raw contents. */
  let sent = 0
  for (const input of message.inputs) {
    const tensor = readInput(message, input, sent)
    if (Result.isFailure(tensor)) return Result.fail(tensor.failure)
    inputs.push(tensor.success)
    if (tensor.success.region === undefined) sent += 1
  }
  const raw = message.rawInputContents.length
  if (raw > sent) return refuse(`expected raw_input_contents of ${sent} inputs for model '${modelName}', got ${raw}`)

  const outputs: Array<RequestedOutput> = []
  for (const { name, parameters: outputParameters } of message.outputs) {
    const region = readRegion(outputParameters)
    if (Result.isFailure(region)) return Result.fail(region.failure)
    const classified = Object.hasOwn(outputParameters, "classification")
    if (region.success !== undefined) {
      if (classified) return Result.fail(RegionReference.conflict("classification"))
      outputs.push({ name, binary: undefined, region: region.success })
    } else if (!classified) outputs.push({ name, binary: undefined })
    else {
      const choice = outputParameters["classification"]?.parameterChoice
      if (choice?.case !== "int64Param") {
        return refuse("invalid value type for 'classification' parameter, expected int64_param")
      }
      outputs.push({ name, binary: undefined, classification: Number(choice.value) })
    }
  }
  return Result.succeed({
    modelName,
    modelVersion: message.modelVersion,
    id: message.id,
    parameters: parameters.success,
    inputs,
    outputs,
  })
}

/** The message holds views on the response's tensors. */
export const toStreamMessage = ({ error, response }: StreamResponse): ModelStreamInferResponse =>
  create(ModelStreamInferResponseSchema, { errorMessage: error, inferResponse: toMessage(response) })

/** The same. */
export const toMessage = ({ modelName, modelVersion, id, parameters, outputs }: WireResponse): ModelInferResponse =>
  create(ModelInferResponseSchema, {
    modelName,
    modelVersion,
    id,
    parameters: writeParameters(parameters),
    outputs: outputs.map(({ name, datatype, shape, region }) =>
      create(ModelInferResponse_InferOutputTensorSchema, {
        name,
        datatype,
        shape: shape.map(BigInt),
        ...(region && { parameters: writeParameters(RegionReference.parameters(region)) }),
      }),
    ),
    rawOutputContents: outputs.map(({ bytes }) => bytes),
  })

const refuse = (message: string) => Result.fail(new InvalidRequest({ message }))

const readInput = (
  message: ModelInferRequest,
  input: InputTensor,
  index: number,
): Result.Result<WireTensor, InvalidRequest> => {
  const { name, datatype } = input
  const subject = `'${name}' for model '${message.modelName}'`
  const shape: Array<number> = []
  for (const extent of input.shape) {
    if (extent > Number.MAX_SAFE_INTEGER || extent < Number.MIN_SAFE_INTEGER) {
      return refuse(
        `input ${subject} has the extent ${extent} in its shape, at most ${Number.MAX_SAFE_INTEGER} is possible`,
      )
    }
    shape.push(Number(extent))
  }
  const region = readRegion(input.parameters)
  if (Result.isFailure(region)) return Result.fail(region.failure)
  if (region.success !== undefined) {
    return input.contents === undefined
      ? Result.succeed({ name, datatype, shape, bytes: noBytes, region: region.success })
      : refuse(`unexpected 'content' provided when using shared memory for input tensor ${subject}`)
  }

  const raw = message.rawInputContents
  if (input.contents !== undefined) {
    if (raw.length > 0) {
      return refuse(`contents field must not be specified when using raw_input_contents for ${subject}`)
    }
    const bytes = readContents(input.contents, datatype)
    if (Result.isFailure(bytes)) {
      const problem = `of type '${bytes.failure}', expected datatype '${datatype}'`
      return refuse(`unexpected explicit tensor data for input tensor ${subject} ${problem}`)
    }
    const unfit = unfitElement(input.contents, datatype)
    if (unfit !== undefined) return refuse(`unexpected explicit tensor data for input tensor ${subject}: ${unfit}`)
    return Result.succeed({ name, datatype, shape, bytes: bytes.success })
  }
  const bytes = raw[index]
  if (bytes !== undefined) return Result.succeed({ name, datatype, shape, bytes })
  return refuse(`unable to find data for input tensor ${subject} in request.`)
}

/** One repeated field of InferTensorContents: its own datatype, and how it is read as each datatype that may use it. */
interface ContentsField<K extends keyof InferTensorContents> {
  readonly field: K
  readonly ownDatatype: string
  readonly converters: { readonly [datatype: string]: (elements: InferTensorContents[K]) => ArrayBufferView }
}

const contentsField = <K extends keyof InferTensorContents>(
  field: K,
  ownDatatype: string,
  converters: ContentsField<K>["converters"],
): ((contents: InferTensorContents, datatype: string) => Result.Result<Uint8Array, string> | undefined) => {
  return (contents, datatype) => {
    const elements = contents[field]
    if (!Array.isArray(elements) || elements.length === 0) return undefined
    if (!Object.hasOwn(converters, datatype)) return Result.fail(ownDatatype)
    const view = converters[datatype]?.(elements)
    return view && Result.succeed(new Uint8Array(view.buffer, view.byteOffset, view.byteLength))
  }
}

/**
 * 8- and 16-bit integers share `int_contents` and `uint_contents` in InferTensorContents
 * (proto/inference/grpc_service.proto). `unfitElement` checks the
 * values.
 */
const contentsFields = [
  contentsField("boolContents", "BOOL", { BOOL: (elements) => Uint8Array.from(elements, Number) }),
  contentsField("intContents", "INT32", {
    INT8: (elements) => new Int8Array(elements),
    INT16: (elements) => new Int16Array(elements),
    INT32: (elements) => new Int32Array(elements),
  }),
  contentsField("int64Contents", "INT64", { INT64: (elements) => new BigInt64Array(elements) }),
  contentsField("uintContents", "UINT32", {
    UINT8: (elements) => new Uint8Array(elements),
    UINT16: (elements) => new Uint16Array(elements),
    UINT32: (elements) => new Uint32Array(elements),
  }),
  contentsField("uint64Contents", "UINT64", { UINT64: (elements) => new BigUint64Array(elements) }),
  contentsField("fp32Contents", "FP32", { FP32: (elements) => new Float32Array(elements) }),
  contentsField("fp64Contents", "FP64", { FP64: (elements) => new Float64Array(elements) }),
  contentsField("bytesContents", "BYTES", { BYTES: (elements) => encodeElements(elements) }),
]

/** Describes the first element that does not fit an 8- or 16-bit integer. */
const unfitElement = (contents: InferTensorContents, datatype: string): string | undefined => {
  switch (datatype) {
    case "INT8":
    case "INT16":
      return outOfRange(datatype, contents.intContents)
    case "UINT8":
    case "UINT16":
      return outOfRange(datatype, contents.uintContents)
    default:
      return undefined
  }
}

const noBytes = new Uint8Array(0)

/** The bytes of the datatype, or the datatype of a field that does not hold it. Without elements: no bytes. */
const readContents = (contents: InferTensorContents, datatype: string): Result.Result<Uint8Array, string> => {
  let found: Result.Result<Uint8Array, string> = Result.succeed(noBytes)
  for (const read of contentsFields) {
    const bytes = read(contents, datatype)
    if (bytes === undefined) continue
    if (Result.isFailure(bytes)) return bytes
    found = bytes
  }
  return found
}

const readParameters = (message: {
  readonly [name: string]: InferParameter
}): Result.Result<Parameters, InvalidRequest> => {
  if (Object.keys(message).length === 0) return Result.succeed(noParameters)
  const entries: Array<[string, Parameter]> = []
  for (const [name, parameter] of Object.entries(message)) {
    const problem = KnownParameters.messageProblem(name, parameter.parameterChoice)
    if (problem !== undefined) return Result.fail(problem)
    const { value } = parameter.parameterChoice
    if (value !== undefined) entries.push([name, value])
  }
  // Defines properties, so that a parameter called `__proto__` is one like any other.
  return Result.succeed(Object.fromEntries(entries))
}

const readRegion = (parameters: {
  readonly [name: string]: InferParameter
}): Result.Result<RegionReference.RegionReference | undefined, InvalidRequest> => {
  if (Object.keys(parameters).length === 0) return Result.succeed(undefined)
  const { parameterNames } = RegionReference
  const choice = (name: string) => (Object.hasOwn(parameters, name) ? parameters[name]?.parameterChoice : undefined)
  const name = choice(parameterNames.name)
  if (name !== undefined && name.case !== "stringParam") {
    return refuse(`invalid value type for '${parameterNames.name}' parameter, expected string_param`)
  }
  const counts: Array<bigint | undefined> = []
  for (const parameter of [parameterNames.byteSize, parameterNames.offset]) {
    const count = choice(parameter)
    if (count !== undefined && count.case !== "int64Param" && count.case !== "uint64Param") {
      return refuse(`invalid value type for '${parameter}' parameter, expected int64_param`)
    }
    if (count !== undefined && count.value < 0n) {
      return refuse(`invalid value ${count.value} for '${parameter}' parameter, expected 0 or more`)
    }
    counts.push(count?.value)
  }
  const [byteSize, offset] = counts
  return RegionReference.make(name?.value, byteSize, offset)
}

const maxInt64 = 2n ** 63n - 1n

/** As the fields of a message. */
const writeParameters = (parameters: Parameters): { [name: string]: InferParameter } =>
  Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, writeParameter(value)]))

const writeParameter = (value: Parameter): InferParameter => {
  switch (typeof value) {
    case "boolean":
      return create(InferParameterSchema, { parameterChoice: { case: "boolParam", value } })
    case "string":
      return create(InferParameterSchema, { parameterChoice: { case: "stringParam", value } })
    case "number":
      return create(InferParameterSchema, { parameterChoice: { case: "doubleParam", value } })
    default:
      return create(InferParameterSchema, {
        parameterChoice: { case: value > maxInt64 ? "uint64Param" : "int64Param", value },
      })
  }
}
