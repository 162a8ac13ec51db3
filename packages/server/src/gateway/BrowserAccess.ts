/**
 * Refuses requests that pages make a browser send: those of other origins (CrossOrigin.ts), and those to a host that is
 * not this server's (AllowedHosts.ts). CORS decides what pages may read. A restricted API is not checked: its secret is
 * unknown to pages.
 */
import { Result } from "effect"
import type { ServeError } from "../error/ServeError.ts"
import type { Cors } from "../port/Cors.ts"
import * as CrossOrigin from "../port/CrossOrigin.ts"
import type { IncomingRequest } from "../port/HttpExchange.ts"
import * as AllowedHosts from "./AllowedHosts.ts"
import type { Api } from "./RestrictedApis.ts"

/** Returns why a request to an API is refused; undefined if it is not. */
export type BrowserAccess = (request: IncomingRequest, api: Api | undefined) => string | undefined

export interface BrowserAccessOptions {
  readonly cors?: Cors | undefined
  readonly allowedHosts?: "*" | ReadonlyArray<string> | undefined
}

export const make = ({ cors, allowedHosts }: BrowserAccessOptions): Result.Result<BrowserAccess, ServeError> => {
  const origins = cors?.origins ?? []
  const crossOrigin = CrossOrigin.make(origins)
  return Result.map(
    AllowedHosts.make(allowedHosts, origins),
    (hosts) => (request, api) => crossOrigin(request) ?? hosts(request, api),
  )
}

/** Access of a server without options. */
export const standard: BrowserAccess = Result.getOrThrow(make({}))
