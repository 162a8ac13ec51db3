/**
 * POST …/infer: body, decode, gateway, encode, reply. A caller that goes away takes its request back.
 *
 *   headers ─► body ─► decompress ─► decode ─► gateway.infer ─► encode ─► compress ─► reply
 *     │          │ too large, corrupt   │ malformed  │ connection closed: cancel
 *     └──────────┴──────────────────────┴─ refused   └─ failed: {"error": …}
 *       unknown encoding, bad length or timeout, too large
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Result } from "effect"
import {
  binaryOutputs,
  type DecodedRequest,
  decodeRawRequest,
  decodeRequest,
  encodeResponse,
  headerLengthHeader,
  parseHeaderLength,
  timeoutHeader,
} from "@nereid/core/BinaryExtension"
import { InvalidRequest, Unsupported } from "@nereid/core/Errors"
import type { WireRequest, WireResponse } from "@nereid/core/WireRequest"
import * as ForwardedHeaders from "./ForwardedHeaders.ts"
import type { Gateway } from "./Gateway.ts"
import { collect } from "./HttpBody.ts"
import * as HttpCompression from "./HttpCompression.ts"
import type { Guard } from "./HttpListener.ts"
import { sendChunks, sendError, sendText } from "./HttpReply.ts"

/** One request to the model that the path names. */
export interface InferCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly guard: Guard
  readonly model: { readonly name: string; readonly version: string }
}

export interface InferOptions {
  /** The largest body, in bytes, compressed and not. */
  readonly maxInputSize: number
  /** Undefined where no header becomes a parameter. */
  readonly forward: ForwardedHeaders.ForwardedHeaders | undefined
}

export const infer = (gateway: Gateway, call: InferCall, { maxInputSize, forward }: InferOptions): void => {
  const { request, response, guard, model } = call
  const { headers } = request
  const encoding = HttpCompression.contentEncoding(headers["content-encoding"])
  if (encoding === undefined) {
    return sendText(response, 501, "Unsupported compression type", { "accept-encoding": HttpCompression.supported })
  }
  const headerLength = parseHeaderLength(single(headers[headerLengthHeader]))
  if (Result.isFailure(headerLength)) return sendError(response, headerLength.failure)
  const deadline = parseDeadline(single(headers[timeoutHeader]))
  if (Result.isFailure(deadline)) return sendError(response, deadline.failure)

  const forwarded = (wire: WireRequest): Result.Result<WireRequest, InvalidRequest> =>
    forward === undefined ? Result.succeed(wire) : forward(wire, ForwardedHeaders.fromRaw(request.rawHeaders))

  const whole = (body: Uint8Array) => {
    // A model that is not there is told before what is wrong with its request.
    const decoded = Result.flatMap(gateway.model(model.name, model.version), (running) => {
      if (running.decoupled) return Result.fail(new Unsupported({ message: unaryOnly }))
      return headerLength.success === 0
        ? decodeRawRequest(body, running)
        : decodeRequest(body, headerLength.success, model)
    })
    if (Result.isFailure(decoded)) return sendError(response, decoded.failure)
    const wire = forwarded(decoded.success.wire)
    if (Result.isFailure(wire)) return sendError(response, wire.failure)
    const cancel = gateway.infer(wire.success, deadline.success, (outcome) =>
      guard(() => {
        if (response.destroyed) return
        if (Result.isFailure(outcome)) sendError(response, outcome.failure)
        else reply(call, decoded.success, outcome.success)
      }),
    )
    // Harmless after the reply; before it, the caller has gone.
    response.on("close", cancel)
  }
  const decompressed = (body: Result.Result<Uint8Array, InvalidRequest>) => {
    if (response.destroyed) return
    if (Result.isFailure(body)) sendError(response, body.failure)
    else whole(body.success)
  }
  collect(request, response, maxInputSize, (body) =>
    guard(() =>
      HttpCompression.decompress(encoding, body, maxInputSize, (result) => guard(() => decompressed(result))),
    ),
  )
}

const reply = ({ request, response, guard }: InferCall, decoded: DecodedRequest, answer: WireResponse): void => {
  const encoded = encodeResponse(answer, binaryOutputs(decoded, answer))
  if (Result.isFailure(encoded)) return sendError(response, encoded.failure)
  const { headerLength, chunks } = encoded.success
  const headers =
    headerLength === undefined
      ? { "content-type": "application/json" }
      : { "content-type": "application/octet-stream", [headerLengthHeader]: headerLength }
  const encoding = HttpCompression.preferred(single(request.headers["accept-encoding"]))
  if (encoding === "identity") return sendChunks(response, chunks, headers)
  HttpCompression.compress(encoding, chunks, (body) =>
    guard(() => {
      if (!response.destroyed) {
        sendChunks(response, [Result.getOrThrow(body)], { ...headers, "content-encoding": encoding })
      }
    }),
  )
}

const unaryOnly = "HTTP end point doesn't support models with decoupled transaction policy"

const single = (header: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof header === "string" || header === undefined ? header : header[0]

const parseDeadline = (text: string | undefined): Result.Result<number | undefined, InvalidRequest> => {
  if (text === undefined) return Result.succeed(undefined)
  if (/^[0-9]{1,12}(\.[0-9]+)?$/.test(text)) return Result.succeed(Date.now() + Number(text))
  const message = `${timeoutHeader} must be a number of milliseconds, got: ${text.slice(0, 40)}`
  return Result.fail(new InvalidRequest({ message }))
}
