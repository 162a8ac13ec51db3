/** The answers of the HTTP front ends, each in one piece with its exact length. */
import type { OutgoingHttpHeaders } from "node:http"
import { Result } from "effect"
import { headersOf } from "@nereid/core/internal/wire/ErrorHeaders"
import { statusOf } from "@nereid/core/internal/wire/ErrorStatus"
import type { InferenceError } from "@nereid/core/Errors"
import { retryAfter } from "@nereid/core/internal/error/InferenceError"
import type { IncomingRequest, OutgoingResponse } from "./HttpExchange.ts"
import * as LingeringClose from "./LingeringClose.ts"

export const sendEmpty = (response: OutgoingResponse, status: number): void => {
  response.writeHead(status, { "content-length": 0 })
  response.end()
}

export const sendJson = (
  response: OutgoingResponse,
  status: number,
  value: unknown,
  headers: OutgoingHttpHeaders = {},
): void => {
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(status, { "content-type": "application/json", "content-length": body.length, ...headers })
  response.end(body)
}

/** An error that has no tag: about the route, not about a request to a model. */
export const sendText = (
  response: OutgoingResponse,
  status: number,
  message: string,
  headers?: OutgoingHttpHeaders,
): void => sendJson(response, status, { error: message }, headers)

export const sendError = (response: OutgoingResponse, error: InferenceError): void =>
  sendJson(response, statusOf(error).http, { error: error.message }, failureHeaders(error))

/** `retry-after` is in whole seconds (RFC 9110, 10.2.3). */
export const failureHeaders = (error: InferenceError): OutgoingHttpHeaders => {
  const millis = retryAfter(error)
  if (millis === undefined) return headersOf(error)
  return { ...headersOf(error), "retry-after": String(Math.max(1, Math.ceil(millis / 1000))) }
}

export const sendResult = (response: OutgoingResponse, result: Result.Result<object, InferenceError>): void => {
  if (Result.isFailure(result)) sendError(response, result.failure)
  else sendJson(response, 200, result.success)
}

/** Size below which a body is sent as a latin1 string, which node writes together with the headers. */
const tinyBody = 8 * 1024

/** Size below which parts are joined; a copy is cheaper than another write. */
const smallBody = 64 * 1024

export const sendChunks = (
  response: OutgoingResponse,
  chunks: ReadonlyArray<Uint8Array>,
  headers: OutgoingHttpHeaders,
): void => {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  response.writeHead(200, { ...headers, "content-length": length })
  if (length <= tinyBody && response.stream === undefined) return void response.end(text(chunks), "latin1")
  const [first] = chunks
  if (first !== undefined && chunks.length === 1) return void response.end(first)
  if (length <= smallBody) return void response.end(Buffer.concat(chunks, length))
  response.cork()
  for (const chunk of chunks) if (chunk.length > 0) response.write(chunk)
  response.end()
  response.uncork()
}

const text = (chunks: ReadonlyArray<Uint8Array>): string => {
  let whole = ""
  for (const { buffer, byteOffset, byteLength } of chunks) {
    whole += Buffer.from(buffer, byteOffset, byteLength).toString("latin1")
  }
  return whole
}

/** Refuses a request whose body is not wanted. The response is sent at once, and the connection closes. */
export const sendErrorAndClose = (
  request: IncomingRequest,
  response: OutgoingResponse,
  error: InferenceError,
  status = statusOf(error).http,
): void => {
  // Over HTTP/2, only the stream ends.
  if ("stream" in request) return sendJson(response, status, { error: error.message }, failureHeaders(error))
  const body = Buffer.from(JSON.stringify({ error: error.message }))
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": body.length,
    connection: "close",
    ...failureHeaders(error),
  })
  response.write(body)
  // A client that sent `Expect` sends no body after a refusal.
  if (request.headers.expect === undefined) LingeringClose.begin(request, () => response.end())
  else response.end()
}
