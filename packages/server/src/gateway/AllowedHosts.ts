/**
 * Names of this server that pages may use. A page whose own host name leads to this server's address (DNS rebinding) is
 * of the same origin for its browser, so neither CORS nor CrossOrigin.ts keeps it away. Browsers send that name as the
 * host of each request.
 */
import { isIP } from "node:net"
import { hostname } from "node:os"
import { Result } from "effect"
import { ServeError } from "../error/ServeError.ts"
import { isEncrypted } from "../port/Encrypted.ts"
import { type IncomingRequest, authorityOf } from "../port/HttpExchange.ts"
import type { Api } from "./RestrictedApis.ts"

/** Returns why a request to an API is refused; undefined if it is not. */
export type AllowedHosts = (request: IncomingRequest, api: Api | undefined) => string | undefined

/** APIs that change the server. The others accept every host, unless hosts are configured. */
const control: ReadonlySet<Api> = new Set(["model-repository", "shared-memory", "trace", "logging"])

/** `hosts` are those of the option, `origins` those that CORS allows. */
export const make = (
  hosts: "*" | ReadonlyArray<string> | undefined,
  origins: "*" | ReadonlyArray<string>,
): Result.Result<AllowedHosts, ServeError> => {
  if (hosts === "*" || (hosts === undefined && origins === "*")) return Result.succeed(() => undefined)
  const wrong = hosts?.find((host) => !isHost(host))
  if (wrong !== undefined) {
    const form = "a name without scheme and port: models.example.com or *.example.com"
    return Result.fail(new ServeError({ message: `'${wrong}' is not an allowed host, which is ${form}` }))
  }
  const given = (hosts ?? []).map((host) => host.toLowerCase())
  const names = new Set([hostname().toLowerCase(), ...given, ...hostsOf(origins)])
  const suffixes = [...privateSuffixes, ...given.flatMap((host) => (host.startsWith("*.") ? [host.slice(1)] : []))]
  const isAllowed = (name: string) =>
    !name.includes(".") || isIP(name) !== 0 || names.has(name) || suffixes.some((suffix) => name.endsWith(suffix))
  const isChecked = (api: Api | undefined) =>
    hosts === undefined ? api !== undefined && control.has(api) : api !== "health"
  return Result.succeed((request, api) => {
    if (!isChecked(api) || !isRebindable(request)) return undefined
    const authority = authorityOf(request)
    // HTTP/1.0, which browsers do not speak.
    if (authority === undefined) return undefined
    const name = nameOf(authority)
    if (name !== undefined && isAllowed(name)) return undefined
    const remedy = "the option allowedHosts (--allowed-hosts) adds hosts"
    return `the host '${name ?? authority}' is not allowed for this API; ${remedy}`
  })
}

/** Names that nobody can register: those of this machine, of private networks, and of services in Kubernetes. */
const privateSuffixes = [".localhost", ".internal", ".svc", ".cluster.local"]

/** Whether a page under a wrong name can send a request. Browsers need TLS for HTTP/2, and TLS checks the name. */
const isRebindable = (request: IncomingRequest): boolean => !("stream" in request) && !isEncrypted(request.socket)

/** Name or address of an authority, in lower case; undefined if it is not one. */
const nameOf = (authority: string): string | undefined => {
  const [, address, name] = /^(?:\[([\da-f:.]+)\]|([\w.-]+?)\.?)(?::\d*)?$/i.exec(authority) ?? []
  return (address === undefined || isIP(address) === 6 ? (address ?? name) : undefined)?.toLowerCase()
}

const isHost = (host: string): boolean => isIP(host) !== 0 || /^(?:\*\.)?[\w-]+(?:\.[\w-]+)*$/.test(host)

const hostsOf = (origins: "*" | ReadonlyArray<string>): ReadonlyArray<string> =>
  (origins === "*" ? [] : origins).flatMap((origin) => (URL.canParse(origin) ? [new URL(origin).hostname] : []))
