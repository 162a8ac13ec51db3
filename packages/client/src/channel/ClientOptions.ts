/**
 * What a client can be told, with its defaults. One set of options for both protocols.
 */
import { Duration } from "effect"
import * as Endpoint from "./Endpoint.ts"

/** Passed on to Node's TLS as they are; of use with `grpcs://` and `https://` only. */
export interface TlsOptions {
  /** Certificates, in PEM, that sign the server's, instead of Node's own list. */
  readonly ca?: string | Buffer | Array<string | Buffer>
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly rejectUnauthorized?: boolean
}

export interface ClientOptions {
  /**
   * `grpc://host`, `grpcs://host`, `http://host` or `https://host`, with an optional port: 8001 for grpc, 8000 for http
   * and 443 for the two with TLS. http and https may have a path, which is put before `/v2`.
   */
  readonly url: string
  /** For calls that give no timeout themselves. Default: none, such a call waits as long as it takes. */
  readonly timeout?: Duration.Input
  /** The version of the model to ask for. Default: the server's choice, which is its newest. */
  readonly version?: string | number
  /** Sent with every request, such as `authorization`. */
  readonly headers?: { readonly [name: string]: string }
  readonly tls?: TlsOptions
  /** How long opening a connection may take. Default 10 seconds. */
  readonly connectTimeout?: Duration.Input
  /** Calls that may wait for their answers; one more is refused with QueueFull. Default 1024. */
  readonly maxInFlight?: number
  /** Bytes of the largest reply; a larger one is an ExecutionFailed. Default 256 MiB. */
  readonly maxResponseSize?: number
  /**
   * Whether the declaration is compared with what the server tells of the model, once, before the first call. Each answer may
   * take the `timeout`, or 30 seconds. Default false.
   */
  readonly verify?: boolean
}

/** The options, read and with their defaults. */
export interface ClientSettings {
  readonly endpoint: Endpoint.Endpoint
  /** Milliseconds; undefined for none. */
  readonly timeout: number | undefined
  /** Empty for the server's choice. */
  readonly version: string
  /** Names in lower case. */
  readonly headers: { readonly [name: string]: string }
  readonly tls: TlsOptions
  /** Milliseconds. */
  readonly connectTimeout: number
  readonly maxInFlight: number
  readonly maxResponseSize: number
  readonly verify: boolean
}

/** @throws TypeError where the URL, a header or a number is none */
export const settings = (options: ClientOptions): ClientSettings => {
  const { url, timeout, version = "", headers = {}, tls = {}, connectTimeout = "10 seconds" } = options
  const { maxInFlight = 1024, maxResponseSize = 256 * 1024 * 1024, verify = false } = options
  requirePositive("maxInFlight", maxInFlight)
  requirePositive("maxResponseSize", maxResponseSize)
  return {
    endpoint: Endpoint.parse(url),
    timeout: timeout === undefined ? undefined : Duration.toMillis(timeout),
    version: String(version),
    // Their names in lower case; throws for what is none.
    headers: Object.fromEntries(new Headers(headers)),
    tls,
    connectTimeout: Duration.toMillis(connectTimeout),
    maxInFlight,
    maxResponseSize,
    verify,
  }
}

const requirePositive = (option: string, value: number) => {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new TypeError(`${option} must be an integer of at least 1, but ${value} was given.`)
  }
}
