/**
 * HTTP bodies of `infer`, for servers and clients: a JSON document, followed by the bytes of its binary tensors in
 * document order. `Inference-Header-Content-Length` is the length of the document; 0 means that the body is the data of
 * the only input. Tensors are views on the body, without copies.
 */
import { Result } from "effect"
import { byteWidth } from "../../tensor/DataType.ts"
import { type InferenceError, InvalidRequest, MalformedRequest } from "../../error/InferenceError.ts"
import { errorPrefix, noParameters } from "../../request/Request.ts"
import { type DocumentTensor, readRequest, readResponse } from "./JsonDecoder.ts"
import { writeJsonRequest, writeRequest, writeResponse } from "./JsonEncoder.ts"
import type { RequestTemplates } from "./RequestTemplates.ts"
import type { ModelInterface } from "../../wire/ModelInterface.ts"
import { isDynamic } from "../../tensor/TensorSpec.ts"
import { elementCount, encodeElements } from "../../tensor/TypedTensor.ts"
import type { WireRequest, WireResponse, WireTensor } from "../../wire/WireRequest.ts"

/** Length of the JSON document where binary data follows it; 0 for a raw request, which has none. */
export const headerLengthHeader = "inference-header-content-length"

/** Milliseconds that the caller will wait for the answer. Nereid's own: the protocol has a deadline for gRPC only. */
export const timeoutHeader = "nereid-timeout-ms"

export interface DecodedRequest {
  readonly wire: WireRequest
  /** Whether outputs that do not say so themselves are sent as binary data. */
  readonly binaryOutputs: boolean
}

export interface EncodedResponse {
  /** Undefined if no output is binary: the body is the document. */
  readonly headerLength: number | undefined
  /** Its memory is its own. */
  readonly document: Uint8Array
  /** Data of the binary outputs, sent after the document. */
  readonly tensors: ReadonlyArray<Uint8Array>
}

/** The length that the header's text gives; undefined without the header. */
export const parseHeaderLength = (text: string | undefined): Result.Result<number | undefined, InvalidRequest> => {
  if (text === undefined) return Result.succeed(undefined)
  const length = Number(text)
  if (/^\s*[+-]?[0-9]+\s*$/.test(text) && Math.abs(length) < 2 ** 31) return Result.succeed(length)
  const problem = `expected a 32-bit integer, got: ${text.slice(0, 40)}`
  return Result.fail(new InvalidRequest({ message: `Unable to parse Inference-Header-Content-Length, ${problem}` }))
}

/**
 * Reads the body of a request to the model that the URL names; at less cost with what earlier ones to it looked like.
 */
export const decodeRequest = (
  body: Uint8Array,
  headerLength: number | undefined,
  model: { readonly name: string; readonly version: string },
  templates?: RequestTemplates,
): Result.Result<DecodedRequest, InferenceError> => {
  const length = headerLength ?? body.length
  if (length < 0 || length > body.length) {
    const message = `inference header size should be in range (0, ${body.length}), got: ${length}`
    return Result.fail(new InvalidRequest({ message }))
  }
  const document = body.subarray(0, length)
  const read = templates === undefined ? readRequest(document) : templates.read(document)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const { id, parameters, outputs, binaryOutputs } = read.success
  const cut = cutTensors(read.success.inputs, body, length)
  if (Result.isFailure(cut)) return Result.fail(new InvalidRequest({ message: inputProblem(cut.failure, model.name) }))
  const wire = { modelName: model.name, modelVersion: model.version, id, parameters, inputs: cut.success, outputs }
  return Result.succeed({ wire, binaryOutputs })
}

/**
 * Reads the body of a raw request: the elements of the model's only input, with one row if the model batches. The
 * body's length determines the variable dim. A BYTES input has one element, the body without a length prefix. All
 * outputs are sent as binary data. Validation.ts checks whether the bytes match the shape.
 */
export const decodeRawRequest = (
  body: Uint8Array,
  model: ModelInterface,
): Result.Result<DecodedRequest, InvalidRequest> => {
  const refuse = (text: string) => Result.fail(new InvalidRequest({ message: errorPrefix({ id: "" }) + text }))
  const [spec, ...others] = model.signature.inputs
  if (spec === undefined || others.length > 0) {
    const got = `got ${model.signature.inputs.length} inputs in '${model.name}' model configuration`
    return refuse(`Raw request must only have 1 input (found 1) to be deduced but ${got}`)
  }
  const { name, datatype, dims } = spec
  const dynamic = dims.filter(isDynamic).length
  if (dynamic > 1) {
    const reason = "there are more than one variable-sized dimension"
    return refuse(`The shape of the raw input '${name}' can not be deduced because ${reason}`)
  }
  const fixed = elementCount(dims.map((dim) => (typeof dim === "number" && dim !== -1 ? dim : 1)))
  const width = byteWidth(datatype)
  if (width === undefined && (dynamic > 0 || fixed !== 1)) {
    return refuse(`For BYTE datatype raw input '${name}', the model must have input shape [1]`)
  }
  const rest = fixed === 0 || width === undefined ? 0 : Math.floor(body.length / (fixed * width))
  const shape = dims.map((dim) => (typeof dim === "number" && dim !== -1 ? dim : rest))
  const bytes = width === undefined ? encodeElements([body]) : body
  const wire: WireRequest = {
    modelName: model.name,
    modelVersion: model.version,
    id: "",
    parameters: noParameters,
    inputs: [{ name, datatype, shape: model.maxBatchSize > 0 ? [1, ...shape] : shape, bytes }],
    outputs: [],
  }
  return Result.succeed({ wire, binaryOutputs: true })
}

/** Which outputs of the response the request wants as binary data. */
export const binaryOutputs = (request: DecodedRequest, response: WireResponse): ReadonlyArray<boolean> =>
  response.outputs.map(({ name }) => {
    const requested = request.wire.outputs.find((output) => output.name === name)
    return requested?.region === undefined && (requested?.binary ?? request.binaryOutputs)
  })

/** Writes a response. `binary`: whether each output is sent as binary data. Fails if an output has no JSON form. */
export const encodeResponse = (
  response: WireResponse,
  binary: ReadonlyArray<boolean>,
): Result.Result<EncodedResponse, InferenceError> => {
  const written = writeResponse(response, binary)
  if (Result.isFailure(written)) return Result.fail(written.failure)
  const document = written.success
  const tensors: Array<Uint8Array> = []
  for (const [index, { bytes }] of response.outputs.entries()) if (binary[index] === true) tensors.push(bytes)
  return Result.succeed({ headerLength: tensors.length > 0 ? document.length : undefined, document, tensors })
}

/** Writes a request with all inputs as binary data, which requests all outputs as binary data. */
export const encodeRequest = (wire: WireRequest): { readonly headerLength: number; readonly body: Uint8Array } => {
  const document = writeRequest(wire)
  let length = document.length
  for (const { bytes } of wire.inputs) length += bytes.length
  const body = new Uint8Array(length)
  body.set(document)
  let offset = document.length
  for (const { bytes } of wire.inputs) {
    body.set(bytes, offset)
    offset += bytes.length
  }
  return { headerLength: document.length, body }
}

/** Writes a request without binary data, which requests outputs as JSON. Fails if an input has no JSON form. */
export const encodeJsonRequest = (wire: WireRequest): Result.Result<Uint8Array, InvalidRequest> =>
  writeJsonRequest(wire)

/** Reads the body of a response, with its outputs as binary data or in the document. */
export const decodeResponse = (
  body: Uint8Array,
  headerLength: number | undefined,
): Result.Result<WireResponse, MalformedRequest> => {
  const length = headerLength ?? body.length
  if (length < 0 || length > body.length) {
    const message = `the header of the response should have 0 to ${body.length} bytes, got: ${length}`
    return Result.fail(new MalformedRequest({ message }))
  }
  const read = readResponse(body.subarray(0, length))
  if (Result.isFailure(read)) return Result.fail(new MalformedRequest({ message: read.failure.message }))
  const cut = cutTensors(read.success.outputs, body, length)
  if (Result.isSuccess(cut)) return Result.succeed({ ...read.success, outputs: cut.success })
  const { name, missing } = cut.failure
  const message =
    name === undefined
      ? "the response has more binary data than its outputs declare"
      : `the response ends ${missing} bytes before the end of the binary data of output '${name}'`
  return Result.fail(new MalformedRequest({ message }))
}

/** A tensor whose bytes are not all there, or no name where bytes are left over. */
interface CutProblem {
  readonly name: string | undefined
  /** How many are missing. */
  readonly missing: number
}

const noBytes = new Uint8Array()

const cutTensors = (
  tensors: ReadonlyArray<DocumentTensor>,
  body: Uint8Array,
  from: number,
): Result.Result<ReadonlyArray<WireTensor>, CutProblem> => {
  const cut: Array<WireTensor> = []
  let offset = from
  for (const { name, datatype, shape, content } of tensors) {
    if (content instanceof Uint8Array) {
      cut.push({ name, datatype, shape, bytes: content })
      continue
    }
    if (typeof content !== "number") {
      cut.push({ name, datatype, shape, bytes: noBytes, region: content })
      continue
    }
    if (content > body.length - offset) return Result.fail({ name, missing: content - (body.length - offset) })
    cut.push({ name, datatype, shape, bytes: body.subarray(offset, offset + content) })
    offset += content
  }
  return offset === body.length ? Result.succeed(cut) : Result.fail({ name: undefined, missing: 0 })
}

const inputProblem = ({ name, missing }: CutProblem, model: string): string =>
  name === undefined
    ? `unexpected additional input data for model '${model}'`
    : `unexpected size for input '${name}', expecting ${missing} additional bytes for model '${model}'`
