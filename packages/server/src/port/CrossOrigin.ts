/**
 * Refuses requests that pages of other origins send through a browser. A page may post text to any address that its
 * browser reaches, without a CORS preflight, and the request takes effect although the page cannot read the response.
 * Requests without `Sec-Fetch-Site` and `Origin` are not from browsers, and pass.
 */
import { type IncomingRequest, authorityOf } from "./HttpExchange.ts"

/** Returns why a request is refused; undefined if it is not. */
export type CrossOrigin = (request: IncomingRequest) => string | undefined

/** `origins` are those that CORS allows. */
export const make = (origins: "*" | ReadonlyArray<string>): CrossOrigin => {
  if (origins === "*") return () => undefined
  const allowed = new Set(origins)
  return (request) => {
    const { headers, method = "" } = request
    const { origin, "sec-fetch-site": site } = headers
    if ((origin ?? site) === undefined || safe.has(method)) return undefined
    // Browsers send the first over TLS and to localhost only, the second with all of these methods.
    if (site === undefined ? isOf(origin, authorityOf(request)) : site === "same-origin" || site === "none") {
      return undefined
    }
    if (origin !== undefined && allowed.has(origin)) return undefined
    const page = origin === undefined ? "a page of another origin" : `a page of another origin, '${origin}'`
    return `this request comes from ${page}, which the option cors (--cors-origins) does not allow`
  }
}

/** Methods that change nothing. */
const safe: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

/** Compares without the scheme, which a proxy for TLS changes. Both omit the scheme's default port. */
const isOf = (origin = "", authority = ""): boolean => {
  if (!URL.canParse(origin) || !URL.canParse(`http://${authority}`)) return false
  const { host, protocol } = new URL(origin)
  return host !== "" && host === new URL(`${protocol}//${authority}`).host
}
