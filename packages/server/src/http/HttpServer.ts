/**
 * The HTTP port of the v2 protocol. Not here: what a path answers (HttpRoutes.ts), and how the port starts and stops
 * (HttpListener.ts).
 */
import { Effect, type Scope } from "effect"
import * as CallRecord from "../log/CallRecord.ts"
import type * as Cors from "../port/Cors.ts"
import * as ForwardedHeaders from "../ForwardedHeaders.ts"
import type { Gateway } from "../Gateway.ts"
import * as HttpListener from "../port/HttpListener.ts"
import * as HttpRoutes from "./HttpRoutes.ts"
import * as RestrictedApis from "../RestrictedApis.ts"
import type { ServeError } from "../ServeError.ts"
import type { Tls } from "../port/Tls.ts"

export interface HttpServerOptions {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** The largest body, in bytes. Default 64 MiB. */
  readonly maxInputSize?: number | undefined
  /** Connections at one time; one more is closed at once. Default 10 000. */
  readonly maxConnections?: number | undefined
  /** Headers that become parameters of their request, as a pattern of their names (ForwardedHeaders.ts). Default none. */
  readonly forwardHeaders?: string | undefined
  /** What answers only to those who have a secret. Default nothing. */
  readonly restrictedApis?: ReadonlyArray<RestrictedApis.Restriction> | undefined
  /** Default: none, the port speaks plaintext. */
  readonly tls?: Tls | undefined
  /** Default: none, browsers keep pages of other origins away. */
  readonly cors?: Cors.Policy | undefined
  /** How long a stop waits for answers in flight. Default 30 s. */
  readonly stopTimeoutMillis?: number | undefined
}

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  options: HttpServerOptions,
): Effect.fn.Return<HttpListener.Address, ServeError, Scope.Scope> {
  const { maxInputSize = 64 * 2 ** 20, forwardHeaders, restrictedApis: restrictions = [], cors, ...listener } = options
  const forward = yield* Effect.fromResult(ForwardedHeaders.make(forwardHeaders, "forwardHeaders.http"))
  const restrictedApis = yield* Effect.fromResult(RestrictedApis.make(restrictions, "http"))
  const records = yield* CallRecord.make(gateway)
  const handler = HttpRoutes.make(gateway, { maxInputSize, forward, restrictedApis, records })
  const answer: HttpListener.Handler =
    cors === undefined
      ? handler
      : (request, response, guard) => {
          if (!cors(request, response)) handler(request, response, guard)
        }
  return yield* HttpListener.make(answer, { name: "HTTP", ...listener })
})
