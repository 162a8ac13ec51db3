/** Options of a client and their defaults, the same for both protocols. */
import { Duration, Result } from "effect"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"

/** Options of Node's TLS, passed on unchanged. They apply to `grpcs://` and `https://`. */
export interface TlsOptions {
  /** Certificate authorities in PEM that replace Node's default list. */
  readonly ca?: string | Buffer | Array<string | Buffer>
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly rejectUnauthorized?: boolean
}

/** Options of a client: the server, and limits of calls. */
export interface ClientOptions {
  /**
   * URL of the server: `grpc://host`, `grpcs://host`, `http://host` or `https://host`, with an optional port. Default
   * port: 8001 for grpc, 8000 for http, 443 with TLS. http and https URLs may have a path, which precedes `/v2`.
   *
   * The scheme may be omitted in front of a port, as in `localhost:8001`. The client then finds out at the first call
   * whether the server speaks gRPC or only HTTP/1.1; a server that speaks both is called over gRPC.
   */
  readonly url: string
  /** Timeout of calls that set none. Default: no timeout. */
  readonly timeout?: Duration.Input
  /** Version of the model. Default: the server's choice, usually the newest. */
  readonly version?: string | number
  /** Headers of every request, such as `authorization`. */
  readonly headers?: { readonly [name: string]: string }
  readonly tls?: TlsOptions
  /** Timeout for opening a connection. Default 10 seconds. */
  readonly connectTimeout?: Duration.Input
  /** Maximum number of calls in flight; further calls fail with QueueFull. Default 1024. */
  readonly maxInFlight?: number
  /** Maximum size of a response, in bytes; a larger response fails with ExecutionFailed. Default 256 MiB. */
  readonly maxResponseSize?: number
  /**
   * Implementation of HTTP/2 for gRPC: "own" for Nereid's, "node" for node:http2, which costs more per call. Browsers
   * ignore it. Default "own", unless the environment variable NEREID_HTTP2 is "node".
   */
  readonly http2?: "node" | "own"
  /**
   * Compares the declaration with the server's metadata once, before the first call. Each request of the check has a
   * timeout of `timeout`, or 30 seconds. Default false.
   */
  readonly verify?: boolean
}

/** Parsed options with defaults. */
export interface ClientSettings {
  readonly endpoint: ServerUrl.ServerUrl
  /** IP address to connect to; absent to look up the host. Its certificate is that of the host. */
  readonly ip?: string
  /** Timeout in milliseconds; undefined for no timeout. */
  readonly timeout: number | undefined
  /** Version of the model; empty for the server's choice. */
  readonly version: string
  /** Headers with names in lower case. */
  readonly headers: { readonly [name: string]: string }
  readonly tls: TlsOptions
  /** Connect timeout, in milliseconds. */
  readonly connectTimeout: number
  readonly maxInFlight: number
  readonly maxResponseSize: number
  /** Undefined for the default. */
  readonly http2: "node" | "own" | undefined
  readonly verify: boolean
}

/**
 * Parses the options and adds the defaults. Fails if the URL is invalid.
 * @throws TypeError if a header or a number is invalid
 */
export const settings = (
  options: ClientOptions,
  assumed?: ServerUrl.Protocol,
): Result.Result<ClientSettings, ServerUrl.InvalidUrl> => {
  const { url, timeout, version = "", headers = {}, tls = {}, connectTimeout = "10 seconds" } = options
  const { maxInFlight = 1024, maxResponseSize = 256 * 1024 * 1024, verify = false } = options
  requirePositive("maxInFlight", maxInFlight)
  requirePositive("maxResponseSize", maxResponseSize)
  const others = {
    timeout: timeout === undefined ? undefined : Duration.toMillis(timeout),
    version: String(version),
    // Converts names to lower case; throws if a header is invalid.
    headers: Object.fromEntries(new Headers(headers)),
    tls,
    connectTimeout: Duration.toMillis(connectTimeout),
    maxInFlight,
    maxResponseSize,
    http2: options.http2,
    verify,
  }
  return Result.map(ServerUrl.parse(url, assumed), (endpoint) => ({ endpoint, ...others }))
}

const requirePositive = (option: string, value: number) => {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new TypeError(`${option} must be an integer of at least 1, but ${value} was given.`)
  }
}
