/**
 * POST …/infer: body, decode, gateway, encode, reply. A connection that closes cancels the request.
 *
 *   headers ─► body ─► decompress ─► model ─► decode ─► gateway.infer ─► encode ─► compress ─► reply
 *     │          │       │ too large,  │ not    │ mal-      │ connection closed: cancel
 *     │          │       │ corrupt     │ found  │ formed    └─ failed: {"error": …}
 *     └──────────┴───────┴─────────────┴────────┴─ refused
 *       unknown encoding, bad length or timeout, too large; read too late, or would be answered too late
 */
import { Result } from "effect"
import {
  binaryOutputs,
  type DecodedRequest,
  decodeRawRequest,
  decodeRequest,
  encodeResponse,
  headerLengthHeader,
  parseHeaderLength,
} from "@nereid/core/internal/codec/json/BinaryExtension"
import { type InferenceError, type InvalidRequest, Unsupported } from "@nereid/core/Errors"
import { RequestTemplates } from "@nereid/core/internal/codec/json/RequestTemplates"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Gateway } from "../gateway/Gateway.ts"
import { isClosed, onSent } from "../port/HttpExchange.ts"
import * as HeldResponse from "./HeldResponse.ts"
import { collect, jsonTooLarge, rawTooLarge } from "./HttpBody.ts"
import { addTiming, deadline, preparation, type HttpCall, type InferOptions, single, timing } from "./HttpCall.ts"
import * as HttpCompression from "./HttpCompression.ts"
import { sendChunks, sendError, sendErrorAndClose, sendText } from "../port/HttpReply.ts"
import type { ReceivedMemory } from "../memory/ReceivedMemory.ts"
import * as RequestMemory from "../memory/RequestMemory.ts"

export const make = (gateway: Gateway, options: InferOptions): ((call: HttpCall) => void) => {
  /** Templates of the requests to each model, for as long as the model exists. */
  const known = new WeakMap<RunningModel, RequestTemplates>()
  const templates = (model: RunningModel): RequestTemplates => {
    const found = known.get(model)
    if (found !== undefined) return found
    const created = new RequestTemplates()
    known.set(model, created)
    return created
  }
  return (call) => infer(gateway, call, options, templates)
}

const infer = (
  gateway: Gateway,
  call: HttpCall,
  options: InferOptions,
  templates: (model: RunningModel) => RequestTemplates,
): void => {
  const { maxInputSize } = options
  const { request, response, guard, model } = call
  const { headers } = request
  const encoding = HttpCompression.contentEncoding(headers["content-encoding"])
  if (encoding === undefined) {
    return sendText(response, 415, "Unsupported compression type", { "accept-encoding": HttpCompression.supported })
  }
  const headerLength = parseHeaderLength(single(headers[headerLengthHeader]))
  if (Result.isFailure(headerLength)) return sendError(response, headerLength.failure)
  const waited = gateway.lateReading.waited()
  const until = deadline(call, waited)
  if (Result.isFailure(until)) return sendError(response, until.failure)
  const late = gateway.lateReading.refusal(waited, until.success?.timeout)
  if (late !== undefined) return refuse(call, late)
  const known = gateway.model(model.name, model.version)
  const refusal = Result.isSuccess(known) ? known.success.calls.preview?.(until.success?.at, call.memory) : undefined
  if (refusal !== undefined) return refuse(call, refusal)

  /** `separate`: the memory of the body, if it was copied from the chunks of the socket. */
  const whole = ({ buffer, byteOffset, byteLength }: Uint8Array, separate?: ReceivedMemory) => {
    // Tensors are views of it, and not of a Buffer, whose slice() would not copy.
    const body = new Uint8Array(buffer, byteOffset, byteLength)
    // An unknown model is reported before an invalid request.
    const found = gateway.model(model.name, model.version)
    if (Result.isFailure(found)) return sendError(response, found.failure)
    const running = found.success
    if (running.calls.decoupled) return sendError(response, new Unsupported({ message: unaryOnly }))
    const decoded =
      headerLength.success === 0
        ? decodeRawRequest(body, running.description)
        : decodeRequest(body, headerLength.success, model, templates(running))
    if (Result.isFailure(decoded)) return sendError(response, decoded.failure)
    const { inputs } = decoded.success.wire
    const isViewed = inputs.some(({ bytes }) => bytes.buffer === body.buffer)
    if (!isViewed) RequestMemory.free(body)
    const { keepsInputs, copiesInputs } = running.calls
    const memory = isViewed ? separate : undefined
    memory?.lend({ keepsInputs, copiesInputs })
    const wire = preparation(
      call,
      options,
    )(memory === undefined ? decoded.success.wire : { ...decoded.success.wire, memory })
    if (Result.isFailure(wire)) return sendError(response, wire.failure)
    const timed = timing(call)
    const cancel = gateway.infer(
      timed === undefined ? wire.success : timed.attach(wire.success),
      until.success?.at,
      (outcome) =>
        guard(() => {
          if (isClosed(response)) return
          addTiming(call, timed)
          if (Result.isFailure(outcome)) return sendError(response, outcome.failure)
          const isFree = memory?.isFree ?? !keepsInputs
          const freeable = !isFree ? [] : isViewed ? [body] : inputs.map(({ bytes }) => bytes)
          reply(call, decoded.success, outcome.success, freeable)
        }),
      call.memory,
    )
    // Harmless after the reply; before it, the caller has gone.
    response.on("close", cancel)
  }
  const decompressed = (body: Result.Result<Uint8Array, InvalidRequest>) => {
    if (isClosed(response)) return
    if (Result.isFailure(body)) sendError(response, body.failure)
    else whole(body.success)
  }
  const tooLarge = headerLength.success === 0 ? rawTooLarge : jsonTooLarge
  const inflate = (body: Uint8Array) =>
    HttpCompression.decompress(encoding, body, maxInputSize, (result) => guard(() => decompressed(result)))
  const collected = (body: Uint8Array, separate: ReceivedMemory | undefined) =>
    // Over HTTP/2, nothing says when the response is sent.
    guard(() =>
      encoding === "identity" ? whole(body, response.stream === undefined ? separate : undefined) : inflate(body),
    )
  collect(call, maxInputSize, collected, tooLarge, headerLength.success)
}

/** Bytes of a body that are read to keep the connection of a refused request. */
const keptBody = 64 * 1024

const refuse = ({ request, response }: HttpCall, error: InferenceError): void => {
  if (Number(request.headers["content-length"] ?? Infinity) <= keptBody) sendError(response, error)
  else sendErrorAndClose(request, response, error)
}

/** `freeable`: memory that nothing uses once the response has been sent. The response may be a view on it. */
const reply = (
  call: HttpCall,
  decoded: DecodedRequest,
  wireResponse: WireResponse,
  freeable: ReadonlyArray<Uint8Array>,
): void => {
  const { request, response, guard } = call
  const encoded = encodeResponse(wireResponse, binaryOutputs(decoded, wireResponse))
  if (Result.isFailure(encoded)) return sendError(response, encoded.failure)
  const { headerLength, document, tensors } = encoded.success
  const chunks = [document, ...tensors]
  if (!HeldResponse.hold(call, sizeOf(chunks))) return
  const large = [new Uint8Array(document.buffer), ...freeable].filter(RequestMemory.isLarge)
  if (large.length > 0) onSent(response, () => large.forEach(RequestMemory.free))
  if (wireResponse.release !== undefined) onSent(response, wireResponse.release)
  const headers =
    headerLength === undefined
      ? { "content-type": "application/json" }
      : { "content-type": "application/octet-stream", [headerLengthHeader]: headerLength }
  const encoding = HttpCompression.preferred(single(request.headers["accept-encoding"]))
  if (encoding === "identity") return sendChunks(response, chunks, headers)
  HttpCompression.compress(encoding, chunks, (body) =>
    guard(() => {
      if (!isClosed(response)) {
        sendChunks(response, [Result.getOrThrow(body)], { ...headers, "content-encoding": encoding })
      }
    }),
  )
}

const sizeOf = (chunks: ReadonlyArray<Uint8Array>): number => {
  let size = 0
  for (const { length } of chunks) size += length
  return size
}

const unaryOnly = "HTTP end point doesn't support models with decoupled transaction policy"
