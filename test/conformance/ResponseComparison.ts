/**
 * Compares the response to a neutral request, over either protocol, with the expected outcome. Returns one line of text
 * for each difference.
 */
import { fromBinary } from "@bufbuild/protobuf"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import {
  type ModelInferResponse,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from "@nereid/protocol/grpc_service"
import { codes } from "./Codes.ts"
import { bytesOf, widths } from "./Elements.ts"
import { type GrpcReply, messages } from "./GrpcConnection.ts"
import type { HttpReply } from "./HttpConnection.ts"
import type { ExpectedOutputs, Element, InferRequest, Outcome, ExpectedError, Tensor } from "./InferRequest.ts"
import { isNumberText, parse } from "./JsonText.ts"

export const compareHttp = (request: InferRequest, expected: Outcome, response: HttpReply): ReadonlyArray<string> => {
  const { status, headers, body } = response
  if ("error" in expected) {
    const expectedStatus = codes[expected.tag].http
    const json = parse(body.toString())
    const text = isRecord(json) && Object.keys(json).length === 1 ? json["error"] : undefined
    return [
      ...difference("status", status, expectedStatus),
      ...difference("content-type", headers.get("content-type"), "application/json"),
      ...difference("tag", headers.get(tagHeader), expected.tag),
      ...textDifference(text, expected, body.toString()),
    ]
  }
  if (status !== 200) return [`status ${status}, expected 200: ${body.toString().slice(0, 300)}`]
  return compareResponse(request, expected, httpOutputs(response))
}

export const compareGrpc = (request: InferRequest, expected: Outcome, response: GrpcReply): ReadonlyArray<string> => {
  const { httpStatus, code, message, tag, body } = response
  if ("error" in expected) {
    return [
      ...difference("HTTP status", httpStatus, 200),
      ...difference("code", code, codes[expected.tag].grpc),
      ...difference("tag", tag, expected.tag),
      ...difference("bytes of messages", body.length, 0),
      ...textDifference(message, expected, message),
    ]
  }
  if (code !== 0) return [`code ${code}, expected 0: ${message.slice(0, 300)}`]
  return compareResponse(request, expected, grpcOutputs(response))
}

/** A stream with one request, which fails in band and is then ended like any other. */
export const compareStream = (request: InferRequest, expected: Outcome, reply: GrpcReply): ReadonlyArray<string> => {
  if (reply.code !== 0) return [`code ${reply.code}, expected 0: ${reply.message}`]
  const { errorMessage, response } = streamReply(reply)
  const marked = difference("triton_final_response", response.isFinal, true)
  if ("error" in expected) {
    return [
      ...marked,
      ...difference("id", response.id, request.id ?? ""),
      ...textDifference(errorMessage, expected, errorMessage),
    ]
  }
  if (errorMessage !== "") return [`error ${errorMessage.slice(0, 300)}`]
  return [...marked, ...compareResponse(request, expected, response)]
}

/** A response, as both protocols say it. */
interface Response {
  readonly modelName: unknown
  readonly modelVersion: unknown
  readonly id: unknown
  readonly outputs: ReadonlyArray<Tensor>
}

const compareResponse = (
  request: InferRequest,
  expected: ExpectedOutputs,
  response: Response,
): ReadonlyArray<string> => [
  ...difference("model name", response.modelName, request.model),
  ...difference("model version", response.modelVersion, expected.version ?? "1"),
  ...difference("id", response.id, request.id ?? ""),
  ...difference("outputs", response.outputs.map(print).join("; "), expected.outputs.map(print).join("; ")),
]

/** A tensor in one line, its bytes in full: what is equal is the same text. */
export const print = (tensor: Tensor): string =>
  `${tensor.name} ${tensor.datatype}[${tensor.shape}] ${Buffer.from(bytesOf(tensor)).toString("hex")}`

/** @throws if the body is not a response of the protocol */
export const httpOutputs = ({ headers, body }: HttpReply): Response => {
  const length = headers.get("inference-header-content-length")
  const type = length === undefined ? "application/json" : "application/octet-stream"
  if (headers.get("content-type") !== type) throw new Error(`content-type ${headers.get("content-type")}, not ${type}`)
  const end = length === undefined ? body.length : Number(length)
  const document = parse(body.toString("latin1", 0, end))
  if (!isRecord(document)) throw new Error("The response is no object")
  if (!Array.isArray(document["outputs"])) throw new Error("The response has no outputs")
  let position = end
  const outputs = document["outputs"].map((output: unknown): Tensor => {
    if (!isRecord(output)) throw new Error("An output is no object")
    const { name, datatype, shape, data, parameters } = output
    if (typeof name !== "string" || typeof datatype !== "string" || !Array.isArray(shape)) {
      throw new Error(`An output without name, datatype or shape: ${JSON.stringify(output)}`)
    }
    const head = { name: utf8(name), datatype, shape: shape.map((extent) => integer(extent)) }
    if (Array.isArray(data)) return { ...head, elements: data.map((element) => elementOf(element, datatype)) }
    const size = isRecord(parameters) ? integer(parameters["binary_data_size"]) : Number.NaN
    position += size
    if (!(position <= body.length)) throw new Error(`Output ${name} has neither data nor its ${size} bytes`)
    return { ...head, elements: [], bytes: body.subarray(position - size, position) }
  })
  if (position !== body.length) throw new Error(`${body.length - position} bytes behind the last output`)
  const text = (field: string) => utf8(String(document[field] ?? ""))
  return { modelName: text("model_name"), modelVersion: text("model_version"), id: text("id"), outputs }
}

/** @throws if the body is not exactly one response */
export const grpcOutputs = ({ body }: GrpcReply): Response =>
  responseOf(fromBinary(ModelInferResponseSchema, only(body)))

/** @throws if the body is not exactly one response of a stream */
export const streamReply = ({ body }: GrpcReply) => {
  const { errorMessage, inferResponse } = fromBinary(ModelStreamInferResponseSchema, only(body))
  if (inferResponse === undefined) throw new Error("A reply without a response")
  const isFinal = inferResponse.parameters["triton_final_response"]?.parameterChoice.value
  return { errorMessage, response: { ...responseOf(inferResponse), isFinal } }
}

const only = (body: Buffer): Uint8Array => {
  const [message, ...others] = messages(body)
  if (message === undefined || others.length > 0) throw new Error(`${others.length} messages beside the first`)
  return message
}

const responseOf = (message: ModelInferResponse): Response => {
  const { modelName, modelVersion, id, outputs, rawOutputContents } = message
  if (outputs.length !== rawOutputContents.length) throw new Error("Outputs and their contents differ in number")
  return {
    modelName,
    modelVersion,
    id,
    outputs: outputs.map(({ name, datatype, shape }, index) => ({
      name,
      datatype,
      shape,
      elements: [],
      bytes: rawOutputContents[index] ?? new Uint8Array(),
    })),
  }
}

/** Text that was read byte by byte, so that bytes that are no UTF-8 survive. */
const utf8 = (text: string): string => Buffer.from(text, "latin1").toString()

export const elementOf = (element: unknown, datatype: string): Element => {
  if (typeof element === "boolean") return element
  if (typeof element === "string") return Buffer.from(element, "latin1")
  if (!isNumberText(element)) throw new Error(`${JSON.stringify(element)} is no element`)
  return (widths.get(datatype) === 8 && datatype !== "FP64" ? BigInt : Number)(element.number)
}

const integer = (value: unknown): number => {
  if (!isNumberText(value) || !/^[0-9]+$/.test(value.number)) throw new Error(`${JSON.stringify(value)} is no extent`)
  return Number(value.number)
}

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const difference = (subject: string, actual: unknown, expected: unknown): ReadonlyArray<string> =>
  Object.is(actual, expected) ? [] : [`${subject} ${String(actual)}, expected ${String(expected)}`]

const textDifference = (text: unknown, { error }: ExpectedError, whole: string): ReadonlyArray<string> => {
  if (typeof text === "string" && (typeof error === "string" ? text === error : error.test(text))) return []
  return [`error ${whole.slice(0, 400)}, expected ${String(error)}`]
}
