/**
 * Finds the route of a request, and refuses a request without one. Paths are matched as they came, without a slash at
 * the end; only a model's name is percent-decoded, because clients quote it.
 */
import type { BrowserAccess } from "../gateway/BrowserAccess.ts"
import type { LimitReports } from "../limit/LimitReports.ts"
import type { MemoryBudget } from "../limit/MemoryBudget.ts"
import type { CallRecords } from "../log/CallRecord.ts"
import type { GuardedHandler } from "../port/DefectGuard.ts"
import { connectionOf, type IncomingRequest, type OutgoingResponse } from "../port/HttpExchange.ts"
import { sendText } from "../port/HttpReply.ts"
import type { Route } from "./HttpRoute.ts"
import type { Guard as ApiGuard, RestrictedApis } from "../gateway/RestrictedApis.ts"
import * as TextMemo from "./TextMemo.ts"

export interface RouterOptions {
  readonly restrictedApis: RestrictedApis
  readonly browserAccess: BrowserAccess
  readonly records: CallRecords
  readonly memory: MemoryBudget
  readonly limits: LimitReports
}

/** Number of paths whose routes are cached: callers request few different paths. */
const maxPaths = 256

export const make = (
  routes: ReadonlyArray<Route>,
  { restrictedApis, browserAccess, records, memory: budget, limits }: RouterOptions,
): GuardedHandler => {
  const matched = TextMemo.make(matcher(routes, restrictedApis), maxPaths)
  return (request, response, guard) => {
    const { url = "" } = request
    const query = url.indexOf("?")
    const path = query < 0 ? url : url.slice(0, query)
    const record = records.begin("HTTP")
    if (record !== undefined) response.on("close", () => record.end(`${request.method} ${path}`, outcome(response)))
    const matches = matched(path)
    // Node sends no body in response to HEAD.
    const wanted = request.method === "HEAD" ? "GET" : request.method
    const found = matches.find(({ method }) => method === wanted)
    if (found !== undefined) {
      const { apiGuard, api, handle, model, repository } = found
      const refusal = apiGuard ? refusalOf(apiGuard, request) : browserAccess(request, api)
      if (refusal !== undefined) return sendText(response, 403, refusal)
      const memory = budget.of(connectionOf(request))
      return handle({ request, response, guard, model, repository, record, memory, limits })
    }
    if (matches.length === 0) return sendText(response, 404, "Not Found")
    const methods = matches.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]))
    sendText(response, 405, "Method Not Allowed", { allow: [...new Set(methods)].join(", ") })
  }
}

const refusalOf = (guard: ApiGuard, { headers }: IncomingRequest): string | undefined =>
  guard.permits(headers[guard.header]) ? undefined : guard.refusal

/** A route that matches a path, with the names in the path. */
interface Match extends Route {
  readonly apiGuard: ApiGuard | undefined
  readonly model: { readonly name: string; readonly version: string }
  readonly repository: string
}

/** Returns the routes of a path, for all methods; none for a path whose percent-encoding is invalid. */
const matcher = (routes: ReadonlyArray<Route>, restrictedApis: RestrictedApis) => {
  const guarded = routes.map((route) => ({ ...route, apiGuard: route.api && restrictedApis(route.api) }))
  return (path: string): ReadonlyArray<Match> => {
    const matches: Array<Match> = []
    for (const route of guarded) {
      const groups = route.path.exec(path)
      if (groups === null) continue
      const { name = "", version = "", repository = "" } = groups.groups ?? {}
      const decoded = percentDecoded(name)
      if (decoded === undefined) break
      matches.push({ ...route, model: { name: decoded, version }, repository })
    }
    return matches
  }
}

const outcome = (response: OutgoingResponse): string =>
  response.headersSent ? String(response.statusCode) : "the client disconnected"

const percentDecoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
