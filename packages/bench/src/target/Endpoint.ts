/** Parses the server's address and protocol from user input such as `localhost:8001` or `https://host/prefix`. */

export interface Endpoint {
  readonly protocol: "grpc" | "http"
  readonly secure: boolean
  /** A name or an IP address, without brackets. */
  readonly host: string
  readonly port: number
  /** Path before `/v2`, without a trailing slash; empty for gRPC. */
  readonly path: string
}

/** Default ports of the servers. With TLS it is 443, because TLS usually ends at a proxy. */
const schemes: { readonly [scheme: string]: Pick<Endpoint, "protocol" | "secure" | "port"> } = {
  "grpc:": { protocol: "grpc", secure: false, port: 8001 },
  "grpcs:": { protocol: "grpc", secure: true, port: 443 },
  "http:": { protocol: "http", secure: false, port: 8000 },
  "https:": { protocol: "http", secure: true, port: 443 },
}

/**
 * Parses an address. `protocol` applies to text without a scheme; default HTTP.
 * @throws Error if the text is invalid or its scheme contradicts `protocol`
 */
export const parse = (text: string, protocol?: Endpoint["protocol"]): Endpoint => {
  const refuse = (problem: string) => new Error(`${JSON.stringify(text)} is not the URL of a server: ${problem}`)
  const [scheme = ""] = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(text) ?? []
  const defaults = schemes[scheme === "" ? `${protocol ?? "http"}:` : scheme.toLowerCase()]
  if (defaults === undefined) throw refuse("it may begin with grpc://, grpcs://, http:// or https://")
  if (protocol !== undefined && defaults.protocol !== protocol) throw refuse(`${protocol} was asked for`)
  // Parsed with the scheme grpc:, because URL drops port 80 of http: URLs, which is not the default here.
  const rest = `grpc:${scheme === "" ? `//${text}` : text.slice(scheme.length)}`
  if (!URL.canParse(rest)) throw refuse("its host or port cannot be read")
  const { hostname, port, pathname, search, hash, username, password } = new URL(rest)
  if (hostname === "") throw refuse("it has no host")
  if (username !== "" || password !== "") throw refuse("credentials belong into a header")
  if (search !== "" || hash !== "") throw refuse("it must not have a query or a fragment")
  const path = pathname.replace(/\/+$/, "")
  if (path !== "" && defaults.protocol === "grpc") throw refuse("gRPC has no path")
  const host = hostname.replace(/^\[(.*)\]$/, "$1")
  return { ...defaults, host, port: port === "" ? defaults.port : Number(port), path }
}
