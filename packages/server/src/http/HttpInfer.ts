/**
 * POST …/infer: body, decode, gateway, encode, reply. A caller that goes away takes its request back.
 *
 *   headers ─► body ─► decompress ─► decode ─► gateway.infer ─► encode ─► compress ─► reply
 *     │          │ too large, corrupt   │ malformed  │ connection closed: cancel
 *     └──────────┴──────────────────────┴─ refused   └─ failed: {"error": …}
 *       unknown encoding, bad length or timeout, too large
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
import { type InvalidRequest, Unsupported } from "@nereid/core/Errors"
import { RequestTemplates } from "@nereid/core/internal/codec/json/RequestTemplates"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Gateway } from "../gateway/Gateway.ts"
import { isGone, onSent } from "../port/HttpExchange.ts"
import { collect, jsonTooLarge, rawTooLarge } from "./HttpBody.ts"
import { deadline, preparation, type HttpCall, type InferOptions, single } from "./HttpCall.ts"
import * as HttpCompression from "./HttpCompression.ts"
import { sendChunks, sendError, sendText } from "../port/HttpReply.ts"
import * as OwnMemory from "../memory/OwnMemory.ts"

export const make = (gateway: Gateway, options: InferOptions): ((call: HttpCall) => void) => {
  /** What the requests to a model look like, as long as there is the model. */
  const known = new WeakMap<RunningModel, RequestTemplates>()
  const templates = (model: RunningModel): RequestTemplates => {
    const found = known.get(model)
    if (found !== undefined) return found
    const made = new RequestTemplates()
    known.set(model, made)
    return made
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
    return sendText(response, 501, "Unsupported compression type", { "accept-encoding": HttpCompression.supported })
  }
  const headerLength = parseHeaderLength(single(headers[headerLengthHeader]))
  if (Result.isFailure(headerLength)) return sendError(response, headerLength.failure)
  const until = deadline(call)
  if (Result.isFailure(until)) return sendError(response, until.failure)

  const whole = (body: Uint8Array) => {
    // A model that is not there is told before what is wrong with its request.
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
    if (!isViewed) OwnMemory.free(body)
    const wire = preparation(call, options)(decoded.success.wire)
    if (Result.isFailure(wire)) return sendError(response, wire.failure)
    const cancel = gateway.infer(wire.success, until.success, (outcome) =>
      guard(() => {
        if (isGone(response)) return
        if (Result.isFailure(outcome)) return sendError(response, outcome.failure)
        const spent = running.calls.keepsInputs ? [] : isViewed ? [body] : inputs.map(({ bytes }) => bytes)
        reply(call, decoded.success, outcome.success, spent)
      }),
    )
    // Harmless after the reply; before it, the caller has gone.
    response.on("close", cancel)
  }
  const decompressed = (body: Result.Result<Uint8Array, InvalidRequest>) => {
    if (isGone(response)) return
    if (Result.isFailure(body)) sendError(response, body.failure)
    else whole(body.success)
  }
  const tooLarge = headerLength.success === 0 ? rawTooLarge : jsonTooLarge
  const inflate = (body: Uint8Array) =>
    HttpCompression.decompress(encoding, body, maxInputSize, tooLarge, (result) => guard(() => decompressed(result)))
  collect(request, response, maxInputSize, (body) => guard(() => inflate(body)), tooLarge, headerLength.success)
}

/** `spent` is what nothing uses any more once the answer has been sent, of which it may be made. */
const reply = (
  { request, response, guard }: HttpCall,
  decoded: DecodedRequest,
  answer: WireResponse,
  spent: ReadonlyArray<Uint8Array>,
): void => {
  const encoded = encodeResponse(answer, binaryOutputs(decoded, answer))
  if (Result.isFailure(encoded)) return sendError(response, encoded.failure)
  const { headerLength, document, tensors } = encoded.success
  const large = [new Uint8Array(document.buffer), ...spent].filter(OwnMemory.isLarge)
  if (large.length > 0) onSent(response, () => large.forEach(OwnMemory.free))
  const chunks = [document, ...tensors]
  const headers =
    headerLength === undefined
      ? { "content-type": "application/json" }
      : { "content-type": "application/octet-stream", [headerLengthHeader]: headerLength }
  const encoding = HttpCompression.preferred(single(request.headers["accept-encoding"]))
  if (encoding === "identity") return sendChunks(response, chunks, headers)
  HttpCompression.compress(encoding, chunks, (body) =>
    guard(() => {
      if (!isGone(response)) {
        sendChunks(response, [Result.getOrThrow(body)], { ...headers, "content-encoding": encoding })
      }
    }),
  )
}

const unaryOnly = "HTTP end point doesn't support models with decoupled transaction policy"
