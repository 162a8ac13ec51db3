/** The HTTP port of the v2 protocol. HttpRoutes.ts has the routes; HttpListener.ts starts and stops the port. */
import { Effect, type Scope } from "effect"
import * as BrowserAccess from "../gateway/BrowserAccess.ts"
import * as CallRecord from "../log/CallRecord.ts"
import type * as Cors from "../port/Cors.ts"
import * as ForwardedHeaders from "../dispatch/ForwardedHeaders.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import type { GuardedHandler } from "../port/DefectGuard.ts"
import type { DashboardStreams } from "../live/DashboardStreams.ts"
import * as HttpListener from "../port/HttpListener.ts"
import * as HttpDashboard from "./HttpDashboard.ts"
import * as HttpModelRoutes from "./HttpModelRoutes.ts"
import * as HttpRouter from "./HttpRouter.ts"
import * as HttpRoutes from "./HttpRoutes.ts"
import * as RestrictedApis from "../gateway/RestrictedApis.ts"
import type { ServeError } from "../error/ServeError.ts"
import * as Spans from "../trace/Spans.ts"
import type { Tls } from "../port/Tls.ts"

/** Limits, routes and access rules of the HTTP front end. */
export interface FrontEndOptions {
  /** Maximum size of a body, in bytes. Default 64 MiB. */
  readonly maxInputSize?: number | undefined
  /** Pattern of the header names that are forwarded as request parameters (ForwardedHeaders.ts). Default: none. */
  readonly forwardHeaders?: string | undefined
  /** APIs that require a secret header. Default: none. */
  readonly restrictedApis?: ReadonlyArray<RestrictedApis.Restriction> | undefined
  /** Custom routes. Default: none. */
  readonly routes?: HttpModelRoutes.ModelRoutes | undefined
  /** The page of the server. Default: none. */
  readonly dashboard?: HttpDashboard.Dashboard | undefined
  /** The streams that the page reads. Default: none. */
  readonly streams?: DashboardStreams | undefined
  /** CORS of the port. Default: none. */
  readonly cors?: Cors.CorsPolicy | undefined
  /** Requests of browsers that are refused. Default: those of a server without options. */
  readonly browserAccess?: BrowserAccess.BrowserAccess | undefined
}

export interface HttpServerOptions extends FrontEndOptions {
  readonly host: string
  /** Port to listen on; 0 picks a free port. */
  readonly port: number
  /** Maximum open connections; further connections are closed at once. Default 10,000. */
  readonly maxConnections?: number | undefined
  /** TLS files. Default: none, the port is plaintext. */
  readonly tls?: Tls | undefined
  /** Maximum time that a stop waits for responses in flight. Default 30 s. */
  readonly stopTimeoutMillis?: number | undefined
  /** Maximum time without progress while a client reads a response. Default 60 s. */
  readonly sendTimeoutMillis?: number | undefined
  /** Age from which a response closes its connection. Default: no limit. */
  readonly maxHttpConnectionAgeMillis?: number | undefined
}

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: HttpServerOptions,
): Effect.fn.Return<HttpListener.Address, ServeError, Scope.Scope> {
  const handler = yield* frontEnd(gateway, options)
  const { host, port, maxConnections, tls, stopTimeoutMillis, sendTimeoutMillis, maxHttpConnectionAgeMillis } = options
  const { limits, connections, leaving } = gateway
  const times = { stopTimeoutMillis, sendTimeoutMillis, maxHttpConnectionAgeMillis }
  const listener = { host, port, maxConnections, tls, ...times, limits, connections, leaving }
  return yield* HttpListener.make(handler, { name: "HTTP", ...listener })
})

/** Makes the HTTP front end, for any port. */
export const frontEnd = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: FrontEndOptions,
): Effect.fn.Return<GuardedHandler, ServeError> {
  const { maxInputSize = 64 * 2 ** 20, forwardHeaders, restrictedApis: restrictions = [], cors } = options
  const { browserAccess = BrowserAccess.standard } = options
  const modelRoutes = yield* Effect.fromResult(HttpModelRoutes.check(options.routes ?? {}))
  const forwarded = yield* Effect.fromResult(ForwardedHeaders.make(forwardHeaders, "forwardHeaders.http"))
  const forward = Spans.joining(gateway, forwarded)
  const restrictedApis = yield* Effect.fromResult(RestrictedApis.make(restrictions, "http"))
  const records = yield* CallRecord.make(gateway)
  const dashboard = yield* HttpDashboard.make(options.dashboard ?? false, options.streams)
  const page = options.streams && dashboard.path
  const protocol = HttpRoutes.make(gateway, { maxInputSize, forward, modelRoutes, restrictedApis, page })
  const routes = [...protocol, ...dashboard.routes]
  const { memory, limits } = gateway
  const handler = HttpRouter.make(routes, { restrictedApis, browserAccess, records, memory, limits })
  if (cors === undefined) return handler
  return (request, response, guard) => {
    if (!cors(request, response)) handler(request, response, guard)
  }
})
