/** The error of an unsuccessful HTTP response: the exact one of a Nereid server, or the closest match. */
import type { IncomingHttpHeaders } from "node:http"
import { documentHeader, fromHeaders, tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { fromHttp } from "@nereid/core/internal/wire/ErrorStatus"
import type { InferenceError } from "@nereid/core/Errors"
import type { Readiness } from "../channel/Channel.ts"

export const failure = (status: number, headers: IncomingHttpHeaders, body: Uint8Array): InferenceError => {
  const message = errorText(body) ?? `the server answered with HTTP status ${status}`
  return withErrorFields(fromHttp(status, message), headers, status)
}

/** Replaces the error by the exact one that a Nereid server names in headers or trailers. */
export const withErrorFields = (closest: InferenceError, fields: IncomingHttpHeaders, status: number): InferenceError =>
  fromHeaders(
    {
      tag: single(fields[tagHeader]),
      document: single(fields[documentHeader]),
      retryAfter: seconds(fields["retry-after"]),
    },
    closest,
    { http: status < 400 ? 500 : status },
  )

/** Reads the status of `/v2/health/ready`. */
export const readiness = (status: number): Readiness => {
  if (status === 200) return "ready"
  return status === 404 || status === 405 || status === 501 ? "unknown" : "notReady"
}

/** Parses seconds to milliseconds. Dates are ignored, because the server's clock is unknown. */
const seconds = (value: string | undefined): number | undefined =>
  value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined

/**
 * The text of `{"error": text}`, which is how the protocol's servers say it, on a stream as an event; a proxy's page
 * says nothing of use.
 */
const errorText = (body: Uint8Array): string | undefined => {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(body).replace(/^data: /, ""))
    if (typeof parsed !== "object" || parsed === null || !("error" in parsed)) return undefined
    return typeof parsed.error === "string" ? parsed.error : undefined
  } catch {
    return undefined
  }
}

export const single = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "object" ? value[0] : value
