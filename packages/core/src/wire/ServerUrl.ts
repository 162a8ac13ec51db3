/**
 * The URL of a model server: `grpc://models:8001`, `https://gateway/prefix`, or `localhost:8000` without a scheme.
 * Parsing resolves no name and opens no connection.
 */
import { Data, Result } from "effect"

export type Protocol = "grpc" | "http"

export interface ServerUrl {
  /** Undefined if the URL has no scheme, which leaves the protocol open. */
  readonly protocol: Protocol | undefined
  readonly secure: boolean
  /** Name or IP address, without brackets. */
  readonly host: string
  readonly port: number
  /** Path before `/v2`, without a trailing slash; empty for gRPC. */
  readonly path: string
}

/** Text that is not the URL of a model server. */
export class InvalidUrl extends Data.TaggedError("InvalidUrl")<{
  /** The text as given, without a password. */
  readonly url: string
  readonly message: string
}> {}

interface Scheme {
  readonly protocol: Protocol
  readonly secure: boolean
  readonly port: number
}

/** Default ports of the servers. With TLS it is 443, because TLS usually ends at a proxy. */
const schemes: { readonly [scheme: string]: Scheme } = {
  "grpc:": { protocol: "grpc", secure: false, port: 8001 },
  "grpcs:": { protocol: "grpc", secure: true, port: 443 },
  "http:": { protocol: "http", secure: false, port: 8000 },
  "https:": { protocol: "http", secure: true, port: 443 },
}

/**
 * Parses a URL. `assumed` is the protocol of a URL without a scheme, which may then omit the port too; a scheme of
 * another protocol is not an error.
 */
export const parse = (text: string, assumed?: Protocol): Result.Result<ServerUrl, InvalidUrl> => {
  const refuse = (problem: string) => {
    const url = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?[^/?#]*@/i, "$1…@")
    return Result.fail(
      new InvalidUrl({ url, message: `${JSON.stringify(url)} is not the URL of a model server: ${problem}` }),
    )
  }
  const [scheme = ""] = /^[a-z][a-z0-9+.-]*:(?=\/\/)/i.exec(text) ?? []
  const given = scheme === "" ? undefined : schemes[scheme.toLowerCase()]
  if (scheme !== "" && given === undefined) {
    return refuse(`it may begin with grpc://, grpcs://, http:// or https://, not ${scheme}//`)
  }
  const rest = scheme === "" ? `//${text}` : text.slice(scheme.length)
  const authority = /^\/\/([^/?#]*)/.exec(rest)?.[1] ?? ""
  if (authority.includes("@")) return refuse("credentials belong in a header, such as authorization")
  if (/^(:|$)/.test(authority)) return refuse("it has no host")
  const digits = /:(\d+)$/.exec(authority)?.[1]
  if (digits !== undefined && (Number(digits) < 1 || Number(digits) > 65_535)) {
    return refuse(`its port is ${digits}, expected 1 to 65535`)
  }
  // Parsed with the scheme grpc:, because URL drops port 80 of http: URLs, which is not the default here.
  const url = URL.parse(`grpc:${rest}`)
  if (url === null || url.hostname === "" || /\s/.test(text)) return refuse("its host or port cannot be read")
  if (url.search !== "" || url.hash !== "") return refuse("it must not have a query or a fragment")
  const path = url.pathname.replace(/\/+$/, "")
  const defaults = given ?? (assumed === undefined ? undefined : schemes[`${assumed}:`])
  if (path !== "" && defaults?.protocol === "grpc") return refuse("gRPC has no path")
  if (url.port === "" && defaults === undefined) {
    const { host } = url
    return refuse(`without a scheme it needs a port: grpc://${host}, http://${host} or ${host}:8000`)
  }
  return Result.succeed({
    // Only HTTP has paths.
    protocol: defaults?.protocol ?? (path === "" ? undefined : "http"),
    secure: defaults?.secure ?? false,
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (defaults?.port ?? 0) : Number(url.port),
    path,
  })
}

/** Formats the host and port, for messages and headers. */
export const address = ({ host, port }: Pick<ServerUrl, "host" | "port">): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`

/** Returns the URL that sockets connect to. */
export const origin = (url: ServerUrl): string => `${url.secure ? "https" : "http"}://${address(url)}`
