/**
 * POST …/infer: body, decode, gateway, encode, reply. A caller that goes away takes its request back.
 *
 *   headers ─► body ─► decode ─► gateway.infer ─► encode ─► reply
 *     │ unknown encoding, bad length or timeout, too large │ connection closed: cancel
 *     └─ refused                                          └─ failed: {"error": …}
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Result } from "effect"
import {
  binaryOutputs,
  type DecodedRequest,
  decodeRequest,
  encodeResponse,
  headerLengthHeader,
  parseHeaderLength,
  timeoutHeader,
} from "@nereid/core/BinaryExtension"
import { InvalidRequest } from "@nereid/core/Errors"
import type { WireResponse } from "@nereid/core/WireRequest"
import type { Gateway } from "./Gateway.ts"
import { collect } from "./HttpBody.ts"
import type { Guard } from "./HttpListener.ts"
import { sendChunks, sendError, sendText } from "./HttpReply.ts"

/** One request to the model that the path names. */
export interface InferCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly guard: Guard
  readonly model: { readonly name: string; readonly version: string }
}

export const infer = (gateway: Gateway, call: InferCall, maxInputSize: number): void => {
  const { request, response, guard, model } = call
  const { headers } = request
  const encoding = headers["content-encoding"] ?? ""
  if (encoding !== "" && encoding !== "identity") {
    return sendText(response, 501, "Unsupported compression type", { "accept-encoding": "identity" })
  }
  const headerLength = parseHeaderLength(single(headers[headerLengthHeader]))
  if (Result.isFailure(headerLength)) return sendError(response, headerLength.failure)
  const deadline = parseDeadline(single(headers[timeoutHeader]))
  if (Result.isFailure(deadline)) return sendError(response, deadline.failure)

  const whole = (body: Uint8Array) => {
    const decoded = decodeRequest(body, headerLength.success, model)
    if (Result.isFailure(decoded)) return sendError(response, decoded.failure)
    const cancel = gateway.infer(decoded.success.wire, deadline.success, (outcome) =>
      guard(() => {
        if (response.destroyed) return
        if (Result.isFailure(outcome)) sendError(response, outcome.failure)
        else reply(response, decoded.success, outcome.success)
      }),
    )
    // Harmless after the reply; before it, the caller has gone.
    response.on("close", cancel)
  }
  collect(request, response, maxInputSize, (body) => guard(() => whole(body)))
}

const reply = (response: ServerResponse, request: DecodedRequest, answer: WireResponse): void => {
  const encoded = encodeResponse(answer, binaryOutputs(request, answer))
  if (Result.isFailure(encoded)) return sendError(response, encoded.failure)
  const { headerLength, chunks } = encoded.success
  sendChunks(
    response,
    chunks,
    headerLength === undefined
      ? { "content-type": "application/json" }
      : { "content-type": "application/octet-stream", [headerLengthHeader]: headerLength },
  )
}

const single = (header: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof header === "string" || header === undefined ? header : header[0]

const parseDeadline = (text: string | undefined): Result.Result<number | undefined, InvalidRequest> => {
  if (text === undefined) return Result.succeed(undefined)
  if (/^[0-9]{1,12}(\.[0-9]+)?$/.test(text)) return Result.succeed(Date.now() + Number(text))
  const message = `${timeoutHeader} must be a number of milliseconds, got: ${text.slice(0, 40)}`
  return Result.fail(new InvalidRequest({ message }))
}
