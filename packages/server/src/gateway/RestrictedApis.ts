/**
 * Parts of the protocol that only callers with a secret header may use, so that one port can serve the public inference
 * and the operator's rest. No authentication of users: one shared secret for each group of APIs.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import { Result } from "effect"
import { ServeError } from "../error/ServeError.ts"

export const apis = [
  "health",
  "metadata",
  "inference",
  "shared-memory",
  "model-config",
  "model-repository",
  "statistics",
  "trace",
  "logging",
] as const

/** Name of an API, as on Triton's command line. */
export type Api = (typeof apis)[number]

/** Restriction of APIs to calls whose header `key` has this value. */
export interface Restriction {
  readonly apis: ReadonlyArray<Api>
  /** Name of the header; over gRPC it is the metadata `triton-grpc-protocol-<key>`. */
  readonly key: string
  readonly value: string
}

/** Access check of an API. */
export interface Guard {
  /** Name of the header, in lower case. */
  readonly header: string
  /** Compares a header value with the secret in constant time. */
  readonly permits: (value: unknown) => boolean
  /** Error message for a refused call. */
  readonly refusal: string
}

/** Returns the guard of an API; undefined for an unrestricted API. */
export type RestrictedApis = (api: Api) => Guard | undefined

/** Terms of the two ports for messages. */
const wording = {
  http: { noun: "api", subject: "This API", prefix: "" },
  grpc: { noun: "protocol", subject: "This protocol", prefix: "triton-grpc-protocol-" },
} as const

export const make = (
  restrictions: ReadonlyArray<Restriction>,
  port: keyof typeof wording,
): Result.Result<RestrictedApis, ServeError> => {
  const { noun, subject, prefix } = wording[port]
  const refuse = (message: string) => Result.fail(new ServeError({ message: `restricted ${noun} ${message}` }))
  const guards = new Map<Api, Guard>()
  for (const restriction of restrictions) {
    const { key, value } = restriction
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(key)) return refuse(`config requires a header name, got '${key}'`)
    if (value === "") return refuse(`config requires a value for header '${key}', got none`)
    const header = prefix + key
    const expected = digest(value)
    const guard: Guard = {
      header: header.toLowerCase(),
      permits: (value) => typeof value === "string" && timingSafeEqual(digest(value), expected),
      refusal: `${subject} is restricted, expecting header '${header}'`,
    }
    for (const api of restriction.apis) {
      if (!isApi(api)) return Result.fail(unknownApi(noun, String(api)))
      if (guards.has(api)) return refuse(`'${api}' can not be specified in multiple config groups`)
      guards.set(api, guard)
    }
  }
  return Result.succeed((api) => guards.get(api))
}

/** Parses a restriction of the command line: `api[,api…]:key=value`. */
export const parse = (text: string, port: keyof typeof wording): Result.Result<Restriction, ServeError> => {
  const { noun } = wording[port]
  const match = /^([^:]*):([^=]*)=(.*)$/s.exec(text)
  if (match === null) {
    const message = `restricted ${noun} config must be <${noun}>[,<${noun}>…]:<key>=<value>, got '${withoutValue(text)}'`
    return Result.fail(new ServeError({ message }))
  }
  const [, list = "", key = "", value = ""] = match
  const names = list.split(",")
  const unknown = names.find((name) => !isApi(name))
  if (unknown !== undefined) return Result.fail(unknownApi(noun, unknown))
  return Result.succeed({ apis: names.filter(isApi), key, value })
}

/**
 * Replaces the secret in a restriction with an ellipsis, for error messages. Without a value, the key itself may be the
 * secret.
 */
export const withoutValue = (text: string): string =>
  text.replace(text.includes("=") ? /(?<==).*$/s : /(?<=:).*$/s, "…")

const isApi = (name: string): name is Api => apis.some((api) => api === name)

const unknownApi = (noun: string, name: string) => new ServeError({ message: `unknown restricted ${noun} '${name}'` })

/** Hashes a value to a constant length, for a constant-time comparison. */
const digest = (value: string): Uint8Array => createHash("sha256").update(value).digest()
