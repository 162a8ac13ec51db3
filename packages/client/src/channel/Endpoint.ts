/** Parses the URL of a server, without resolving or connecting. */

export interface Endpoint {
  readonly protocol: "grpc" | "http"
  readonly secure: boolean
  /** IPv6 addresses in brackets, as in the URL. */
  readonly hostname: string
  readonly port: number
  /** Path before `/v2`, without a trailing slash; empty for gRPC. */
  readonly path: string
}

/** Default ports. With TLS it is 443, because TLS usually ends at a proxy; the others are the servers' own ports. */
const schemes: { readonly [scheme: string]: Pick<Endpoint, "protocol" | "secure" | "port"> } = {
  "grpc:": { protocol: "grpc", secure: false, port: 8001 },
  "grpcs:": { protocol: "grpc", secure: true, port: 443 },
  "http:": { protocol: "http", secure: false, port: 8000 },
  "https:": { protocol: "http", secure: true, port: 443 },
}

/** @throws TypeError for what is not the URL of a server */
export const parse = (url: string): Endpoint => {
  const refuse = (problem: string) =>
    new TypeError(`${JSON.stringify(url)} is not the URL of a model server: ${problem}.`)

  const [scheme = ""] = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(url) ?? []
  const defaults = schemes[scheme.toLowerCase()]
  if (defaults === undefined) {
    throw refuse(`it must begin with grpc://, grpcs://, http:// or https://${scheme === "" ? "" : `, not ${scheme}//`}`)
  }
  // Parsed with the scheme grpc:, because URL drops port 80 of http: URLs, which is not the default here.
  const rest = `grpc:${url.slice(scheme.length)}`
  if (!URL.canParse(rest)) throw refuse("its host or port cannot be read")
  const { hostname, port, pathname, search, hash, username, password } = new URL(rest)
  if (hostname === "") throw refuse("it has no host")
  if (port === "0") throw refuse("no server has port 0")
  if (username !== "" || password !== "") throw refuse("credentials belong into the option `headers`")
  if (search !== "" || hash !== "") throw refuse("it must not have a query or a fragment")
  const path = pathname.replace(/\/+$/, "")
  if (path !== "" && defaults.protocol === "grpc") throw refuse("gRPC has no path")
  return { ...defaults, hostname, port: port === "" ? defaults.port : Number(port), path }
}

/** Formats an endpoint for messages. */
export const address = ({ hostname, port }: Endpoint): string => `${hostname}:${port}`

/** Returns the URL that sockets connect to. */
export const origin = (endpoint: Endpoint): string => `${endpoint.secure ? "https" : "http"}://${address(endpoint)}`
