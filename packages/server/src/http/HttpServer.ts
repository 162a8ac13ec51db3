/** The HTTP port of the v2 protocol. HttpRoutes.ts has the routes; HttpListener.ts starts and stops the port. */
import { Effect, type Scope } from "effect"
import * as CallRecord from "../log/CallRecord.ts"
import type * as Cors from "../port/Cors.ts"
import * as ForwardedHeaders from "../dispatch/ForwardedHeaders.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import type { GuardedHandler } from "../port/DefectGuard.ts"
import * as HttpListener from "../port/HttpListener.ts"
import * as HttpModelRoutes from "./HttpModelRoutes.ts"
import * as HttpRouter from "./HttpRouter.ts"
import * as HttpRoutes from "./HttpRoutes.ts"
import * as RestrictedApis from "../gateway/RestrictedApis.ts"
import type { ServeError } from "../error/ServeError.ts"
import * as Spans from "../trace/Spans.ts"
import type { Tls } from "../port/Tls.ts"

/** Limits, routes and access rules of the HTTP front end. */
export interface FrontEndOptions {
  /** The largest body, in bytes. Default 64 MiB. */
  readonly maxInputSize?: number | undefined
  /** Headers that become parameters of their request, as a pattern of their names (ForwardedHeaders.ts). Default none. */
  readonly forwardHeaders?: string | undefined
  /** APIs that require a secret header. Default: none. */
  readonly restrictedApis?: ReadonlyArray<RestrictedApis.Restriction> | undefined
  /** Paths of one's own. Default none. */
  readonly routes?: HttpModelRoutes.ModelRoutes | undefined
  /** Default: none, browsers keep pages of other origins away. */
  readonly cors?: Cors.CorsPolicy | undefined
}

export interface HttpServerOptions extends FrontEndOptions {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** Connections at one time; one more is closed at once. Default 10 000. */
  readonly maxConnections?: number | undefined
  /** Default: none, the port speaks plaintext. */
  readonly tls?: Tls | undefined
  /** How long a stop waits for answers in flight. Default 30 s. */
  readonly stopTimeoutMillis?: number | undefined
}

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  { host, port, maxConnections, tls, stopTimeoutMillis, ...options }: HttpServerOptions,
): Effect.fn.Return<HttpListener.Address, ServeError, Scope.Scope> {
  const handler = yield* frontEnd(gateway, options)
  return yield* HttpListener.make(handler, { name: "HTTP", host, port, maxConnections, tls, stopTimeoutMillis })
})

/** For whatever port its requests come to. */
export const frontEnd = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: FrontEndOptions,
): Effect.fn.Return<GuardedHandler, ServeError> {
  const { maxInputSize = 64 * 2 ** 20, forwardHeaders, restrictedApis: restrictions = [], cors } = options
  const modelRoutes = yield* Effect.fromResult(HttpModelRoutes.check(options.routes ?? {}))
  const forwarded = yield* Effect.fromResult(ForwardedHeaders.make(forwardHeaders, "forwardHeaders.http"))
  const forward = Spans.joining(gateway.spans, forwarded)
  const restrictedApis = yield* Effect.fromResult(RestrictedApis.make(restrictions, "http"))
  const records = yield* CallRecord.make(gateway)
  const routes = HttpRoutes.make(gateway, { maxInputSize, forward, modelRoutes })
  const handler = HttpRouter.make(routes, { restrictedApis, records })
  if (cors === undefined) return handler
  return (request, response, guard) => {
    if (!cors(request, response)) handler(request, response, guard)
  }
})
