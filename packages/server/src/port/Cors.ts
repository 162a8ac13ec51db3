/**
 * CORS of a port, as in the Fetch standard: cross-origin requests that browsers may send, and response headers that
 * pages may read. Off by default. CORS restricts only browsers and does not authenticate clients.
 */
import { cors as connect } from "@connectrpc/connect"
import { Duration, Result } from "effect"
import { timeoutHeader } from "@nereid/core/internal/codec/json/BinaryExtension"
import { documentHeader, tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import type { IncomingRequest, OutgoingResponse } from "./HttpExchange.ts"
import { ServeError } from "../error/ServeError.ts"

/** Cross-origin requests that the server allows to browsers. */
export interface Cors {
  /** Allowed origins, such as `https://app.example.com`; "*" for all. */
  readonly origins: "*" | ReadonlyArray<string>
  /**
   * Request headers that pages may send in addition to those of the protocols, such as `authorization`. Default: none.
   */
  readonly headers?: ReadonlyArray<string>
  /** Response headers that pages may read in addition to those of the protocols. Default: none. */
  readonly exposedHeaders?: ReadonlyArray<string>
  /** Maximum time that browsers cache a preflight. Default 2 hours; browsers limit it to 24 hours. */
  readonly maxAge?: Duration.Input
}

/** Adds the CORS headers to a response. Returns true for a preflight, whose response is then complete. */
export type CorsPolicy = (request: IncomingRequest, response: OutgoingResponse) => boolean

/** Request headers of HTTP inference, gRPC-Web and Connect; the same on both ports. */
const sent = [
  ...connect.allowedHeaders,
  "Inference-Header-Content-Length",
  timeoutHeader,
  "Endpoint-Load-Metrics-Format",
  "Traceparent",
  "Tracestate",
  "Nereid-Timing",
]

const seen = [
  ...connect.exposedHeaders,
  "Inference-Header-Content-Length",
  tagHeader,
  documentHeader,
  "Endpoint-Load-Metrics",
  "Retry-After",
  "Server-Timing",
  "Grpc-Retry-Pushback-Ms",
]

export const make = (cors: Cors): Result.Result<CorsPolicy, ServeError> => {
  const { origins, headers = [], exposedHeaders = [] } = cors
  const wrong = origins === "*" ? undefined : origins.find((origin) => !isOrigin(origin))
  if (wrong !== undefined) {
    const message = `'${wrong}' is not a CORS origin, which is a scheme, a host and an optional port: https://app.example.com`
    return Result.fail(new ServeError({ message }))
  }
  const exposed = [...seen, ...exposedHeaders].join(", ")
  const preflight = {
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": [...sent, ...headers].join(", "),
    "access-control-max-age": String(Math.floor(Duration.toSeconds(cors.maxAge ?? "2 hours"))),
  }
  const allowed = origins === "*" ? undefined : new Set(origins)

  return Result.succeed((request, response) => {
    const { origin } = request.headers
    // Set even without an origin, because a cached response must not be used for a page.
    if (allowed !== undefined) response.setHeader("vary", "Origin")
    if (origin === undefined || allowed?.has(origin) === false) return false
    response.setHeader("access-control-allow-origin", allowed === undefined ? "*" : origin)
    if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) {
      response.setHeader("access-control-expose-headers", exposed)
      return false
    }
    for (const [name, value] of Object.entries(preflight)) response.setHeader(name, value)
    response.statusCode = 204
    response.end()
    return true
  })
}

/**
 * Checks for an origin as browsers send it: lower case, without the scheme's default port; "null" for opaque origins.
 */
const isOrigin = (text: string): boolean => {
  if (text === "null") return true
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#*]+$/.test(text) || !URL.canParse(text)) return false
  const { origin } = new URL(text)
  return origin === "null" || origin === text
}
