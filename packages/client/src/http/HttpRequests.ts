/**
 * HTTP requests and responses of inference: paths, header fields and bodies. HttpChannel.ts (Node) and FetchChannel.ts
 * (browsers) send them.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Result } from "effect"
import * as BinaryExtension from "@nereid/core/internal/codec/json/BinaryExtension"
import { ExecutionFailed, type InferenceError, Unsupported } from "@nereid/core/Errors"
import * as GenerateMessage from "@nereid/core/internal/codec/generate/GenerateMessage"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Channel, ChannelReceiver, ChannelStream } from "../channel/Channel.ts"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import * as HttpStatus from "./HttpStatus.ts"
import * as TraceParent from "../channel/TraceParent.ts"

export interface HttpRequest {
  /** Behind the origin. */
  readonly path: string
  readonly headers: { readonly [name: string]: string }
  readonly body: Uint8Array
}

/** A request to `infer`, with binary tensors. */
export const infer = (settings: ClientSettings, wire: WireRequest, timeoutMs: number | undefined): HttpRequest => {
  const { body, headerLength } = BinaryExtension.encodeRequest(wire)
  const headers = {
    "content-type": "application/octet-stream",
    [BinaryExtension.headerLengthHeader]: String(headerLength),
  }
  return request(settings, wire, "infer", timeoutMs, headers, body)
}

/**
 * Builds a request to `generate_stream`, with trailers for failures where supported. Fails if JSON cannot represent the
 * request or the response.
 */
export const generateStream = (
  settings: ClientSettings,
  wire: WireRequest,
  timeoutMs: number | undefined,
  model: GenerateMessage.GenerateModel,
): Result.Result<HttpRequest, Unsupported> => {
  const problem = GenerateMessage.problem(model)
  if (problem !== undefined) return Result.fail(problem)
  const headers = { "content-type": "application/json", te: "trailers" }
  return Result.map(GenerateMessage.encode(wire), (body) =>
    request(settings, wire, "generate_stream", timeoutMs, headers, body),
  )
}

/** A request for the readiness of the server. */
export const ready = ({ endpoint, headers }: ClientSettings): Pick<HttpRequest, "path" | "headers"> => ({
  path: `${endpoint.path}/v2/health/ready`,
  headers,
})

const request = (
  { endpoint, headers }: ClientSettings,
  wire: WireRequest,
  route: string,
  timeoutMs: number | undefined,
  extraHeaders: Record<string, string>,
  body: HttpRequest["body"],
): HttpRequest => {
  const { modelName, modelVersion } = wire
  const version = modelVersion === "" ? "" : `/versions/${encodeURIComponent(modelVersion)}`
  const all: Record<string, string> = { ...headers, ...TraceParent.headers(wire), ...extraHeaders }
  const timeout = timeoutHeader(timeoutMs)
  if (timeout !== undefined) all[BinaryExtension.timeoutHeader] = timeout
  return { path: `${endpoint.path}/v2/models/${encodeURIComponent(modelName)}${version}/${route}`, headers: all, body }
}

/** Maximum timeout that servers can parse: twelve digits, or thirty years in ms. */
const maxTimeout = 999_999_999_999

/** Rounded up; undefined for no end. */
const timeoutHeader = (milliseconds = Infinity): string | undefined =>
  Number.isFinite(milliseconds) ? String(Math.min(maxTimeout, Math.max(1, Math.ceil(milliseconds)))) : undefined

/** Decodes the reply to `infer`. */
export const decodeReply = (
  status: number,
  headers: IncomingHttpHeaders,
  body: Uint8Array,
): Result.Result<WireResponse, InferenceError> => {
  if (status !== 200) return Result.fail(HttpStatus.failure(status, headers, body))
  const unreadable = ({ message }: InferenceError) =>
    new ExecutionFailed({ message: `cannot decode the server's response: ${message}` })
  return BinaryExtension.parseHeaderLength(HttpStatus.single(headers[BinaryExtension.headerLengthHeader])).pipe(
    Result.flatMap((length): Result.Result<WireResponse, InferenceError> =>
      BinaryExtension.decodeResponse(body, length),
    ),
    Result.mapError(unreadable),
  )
}

/**
 * Requests a single response with binary data, for a model whose tensors have no JSON form. A decoupled model has no
 * such endpoint and fails with `refusal`.
 */
export const singleResponse = (
  infer: Channel["infer"],
  wire: WireRequest,
  timeoutMs: number | undefined,
  receiver: ChannelReceiver,
  refusal: Unsupported,
): ChannelStream => {
  const cancel = infer(wire, timeoutMs, (outcome, cause) => {
    if (Result.isSuccess(outcome)) {
      receiver.response(outcome.success)
      return receiver.end(Result.void)
    }
    const { failure } = outcome
    // Servers of the protocol send this document with any status.
    if (!failure.message.includes("decoupled")) return receiver.end(Result.fail(failure), cause)
    const message = `${refusal.message}; streaming it requires gRPC`
    receiver.end(Result.fail(new Unsupported({ message })))
  })
  return { cancel, flow: () => {} }
}
