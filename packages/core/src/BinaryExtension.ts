/**
 * Bodies of `infer` over HTTP, as servers and clients exchange them: a JSON document and, behind it, the bytes of the
 * tensors that it announces as binary data, in its order. `Inference-Header-Content-Length` says where the document ends.
 * Tensors are views on the body; nothing is copied.
 */
import { Result } from "effect"
import { type InferenceError, InvalidRequest, MalformedRequest, Unsupported } from "./Errors.ts"
import * as JsonCodec from "./JsonCodec.ts"
import type { WireRequest, WireResponse, WireTensor } from "./WireRequest.ts"

/** Length of the JSON document where binary data follows it. */
export const headerLengthHeader = "inference-header-content-length"

/** Milliseconds that the caller will wait for the answer. Nereid's own: the protocol has a deadline for gRPC only. */
export const timeoutHeader = "nereid-timeout-ms"

export interface DecodedRequest {
  readonly wire: WireRequest
  /** Whether outputs that do not say so themselves are sent as binary data. */
  readonly binaryOutputs: boolean
}

export interface EncodedResponse {
  /** Undefined where no output is binary: the body is the document. */
  readonly headerLength: number | undefined
  /** The document and the binary outputs, to be sent in this order. */
  readonly chunks: ReadonlyArray<Uint8Array>
}

/** The length that the header's text gives; undefined without the header. */
export const parseHeaderLength = (text: string | undefined): Result.Result<number | undefined, InvalidRequest> => {
  if (text === undefined) return Result.succeed(undefined)
  const length = Number(text)
  if (/^\s*[+-]?[0-9]+\s*$/.test(text) && Math.abs(length) < 2 ** 31) return Result.succeed(length)
  const problem = `expected a 32-bit integer, got: ${text.slice(0, 40)}`
  return Result.fail(new InvalidRequest({ message: `Unable to parse Inference-Header-Content-Length, ${problem}` }))
}

/** Reads the body of a request to the model that the URL names. */
export const decodeRequest = (
  body: Uint8Array,
  headerLength: number | undefined,
  model: { readonly name: string; readonly version: string },
): Result.Result<DecodedRequest, InferenceError> => {
  const length = headerLength ?? body.length
  if (length < 0 || length > body.length) {
    const message = `inference header size should be in range (0, ${body.length}), got: ${length}`
    return Result.fail(new InvalidRequest({ message }))
  }
  if (headerLength === 0) {
    const message = "raw binary requests are not supported: Inference-Header-Content-Length is 0, and there is no JSON"
    return Result.fail(new Unsupported({ message }))
  }
  const read = JsonCodec.readRequest(body.subarray(0, length))
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const { id, parameters, outputs, binaryOutputs } = read.success
  const cut = cutTensors(read.success.inputs, body, length)
  if (Result.isFailure(cut)) return Result.fail(new InvalidRequest({ message: inputProblem(cut.failure, model.name) }))
  const wire = { modelName: model.name, modelVersion: model.version, id, parameters, inputs: cut.success, outputs }
  return Result.succeed({ wire, binaryOutputs })
}

/** Which outputs of the response the request wants as binary data. */
export const binaryOutputs = (request: DecodedRequest, response: WireResponse): ReadonlyArray<boolean> =>
  response.outputs.map(({ name }) => {
    const asked = request.wire.outputs.find((output) => output.name === name)
    return asked?.binary ?? request.binaryOutputs
  })

/** Writes a response; `binary` by position in its outputs. Fails where an output has no JSON form. */
export const encodeResponse = (
  response: WireResponse,
  binary: ReadonlyArray<boolean>,
): Result.Result<EncodedResponse, InferenceError> =>
  Result.map(JsonCodec.writeResponse(response, binary), (document) => {
    const blobs = response.outputs.filter((_, index) => binary[index] === true).map(({ bytes }) => bytes)
    return { headerLength: binary.includes(true) ? document.length : undefined, chunks: [document, ...blobs] }
  })

/** Writes a request with all inputs as binary data, which asks for all outputs as binary data. */
export const encodeRequest = (wire: WireRequest): { readonly headerLength: number; readonly body: Uint8Array } => {
  const document = JsonCodec.writeRequest(wire)
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
  const read = JsonCodec.readResponse(body.subarray(0, length))
  if (Result.isFailure(read)) return Result.fail(new MalformedRequest({ message: read.failure.message }))
  const cut = cutTensors(read.success.outputs, body, length)
  if (Result.isSuccess(cut)) return Result.succeed({ ...read.success, outputs: cut.success })
  const { name, missing } = cut.failure
  const message =
    name === undefined
      ? "the response has more binary data than its outputs announce"
      : `the response ends ${missing} bytes before the end of the binary data of output '${name}'`
  return Result.fail(new MalformedRequest({ message }))
}

/** A tensor whose bytes are not all there, or no name where bytes are left over. */
interface CutProblem {
  readonly name: string | undefined
  /** How many are missing. */
  readonly missing: number
}

const cutTensors = (
  tensors: ReadonlyArray<JsonCodec.DocumentTensor>,
  body: Uint8Array,
  from: number,
): Result.Result<ReadonlyArray<WireTensor>, CutProblem> => {
  const cut: Array<WireTensor> = []
  let offset = from
  for (const { name, datatype, shape, content } of tensors) {
    if (typeof content !== "number") {
      cut.push({ name, datatype, shape, bytes: content })
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
