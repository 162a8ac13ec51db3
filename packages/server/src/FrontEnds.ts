/** The ports of a server: which front ends listen, and where. The order of start and stop is in OpenServer.ts. */
import { Duration, Effect, type Scope } from "effect"
import { ServeError } from "./error/ServeError.ts"
import * as BrowserAccess from "./gateway/BrowserAccess.ts"
import type { Gateway } from "./gateway/Gateway.ts"
import * as GrpcServer from "./grpc/GrpcServer.ts"
import * as HttpServer from "./http/HttpServer.ts"
import * as DashboardStreams from "./live/DashboardStreams.ts"
import type { Address } from "./ListeningServer.ts"
import * as MetricsServer from "./metrics/MetricsServer.ts"
import * as OnePort from "./OnePort.ts"
import type * as Cors from "./port/Cors.ts"
import type { Listen, ServerOptions } from "./ServerOptions.ts"

/** Addresses of the front ends; undefined for one that is turned off. */
export interface FrontEnds {
  readonly metrics: Address | undefined
  readonly port: Address | undefined
  readonly http: Address | undefined
  readonly grpc: Address | undefined
}

/** The names of Connect's headers are those of its package, which few servers need at the start. */
const corsPolicy = Effect.fnUntraced(function* (cors: Cors.Cors) {
  const { make } = yield* Effect.promise(() => import("./port/Cors.ts"))
  return yield* Effect.fromResult(make(cors))
})

/** Opens the ports, which close with the scope. Calls end within `drainTimeout` then. */
export const open = Effect.fnUntraced(function* (
  gateway: Gateway,
  drainTimeout: Duration.Duration,
  options: ServerOptions,
): Effect.fn.Return<FrontEnds, ServeError, Scope.Scope> {
  const { http = 8000, grpc = 8001, metrics = 8002, port = false, tls = {} } = options
  const { maxConnections = 10_000, maxInputSize = 64 * 2 ** 20, maxMessageSize = 256 * 2 ** 20 } = options
  const { fastInference = true, forwardHeaders = {}, restrictedApis = {} } = options
  const cors = options.cors && (yield* corsPolicy(options.cors))
  const browserAccess = yield* Effect.fromResult(BrowserAccess.make(options))
  const sendTimeoutMillis = Duration.toMillis(Duration.fromInputUnsafe(options.sendTimeout ?? "60 seconds"))
  const maxHttpConnectionAgeMillis = Duration.toMillis(
    Duration.fromInputUnsafe(options.maxHttpConnectionAge ?? "Infinity"),
  )
  if (!(maxHttpConnectionAgeMillis >= 1)) {
    const message = `maxHttpConnectionAge is ${maxHttpConnectionAgeMillis} ms, expected at least 1 ms`
    return yield* new ServeError({ message })
  }
  const httpOptions: HttpServer.FrontEndOptions = {
    cors,
    browserAccess,
    maxInputSize,
    forwardHeaders: forwardHeaders.http,
    restrictedApis: restrictedApis.http,
    routes: options.routes,
    dashboard: options.dashboard,
    streams: (options.dashboard ?? false) === false ? undefined : yield* DashboardStreams.make(gateway),
  }
  const grpcOptions: GrpcServer.FrontEndOptions = {
    cors,
    browserAccess,
    maxMessageSize,
    sendTimeoutMillis,
    responseCompression: options.responseCompression,
    keepalive: options.keepalive,
    fastInference,
    http2: options.http2,
    forwardHeaders: forwardHeaders.grpc,
    restrictedApis: restrictedApis.grpc,
  }
  // A front end cuts its callers off only after the models have had the time to answer them.
  const stopTimeoutMillis = Duration.toMillis(drainTimeout) + 1000
  const listener = { maxConnections, stopTimeoutMillis, sendTimeoutMillis, maxHttpConnectionAgeMillis }
  return {
    metrics: yield* listen(metrics, (address) =>
      MetricsServer.make(gateway, { ...address, metrics: options.metricsOptions }),
    ),
    port: yield* listen(port, (address) =>
      OnePort.make(gateway, { ...address, ...listener, tls: tls.port, http: httpOptions, grpc: grpcOptions }),
    ),
    http: yield* listen(yield* ownPort("http", http, port, tls), (address) =>
      HttpServer.make(gateway, { ...address, ...listener, tls: tls.http, ...httpOptions }),
    ),
    grpc: yield* listen(yield* ownPort("grpc", grpc, port, tls), (address) =>
      GrpcServer.make(gateway, { ...address, ...listener, tls: tls.grpc, ...grpcOptions }),
    ),
  }
})

const listen = <R>(
  at: Listen,
  make: (address: Address) => Effect.Effect<Address, ServeError, R>,
): Effect.Effect<Address | undefined, ServeError, R> => (at === false ? Effect.undefined : make(addressOf(at)))

const addressOf = (at: Exclude<Listen, false>): Address => (typeof at === "number" ? { host: "0.0.0.0", port: at } : at)

/** Where HTTP or gRPC listens by itself; false if the common port replaces it, or if it is off. */
const ownPort = (
  name: "http" | "grpc",
  own: Listen,
  everything: Listen,
  tls: NonNullable<ServerOptions["tls"]>,
): Effect.Effect<Listen, ServeError> => {
  if (own === false || everything === false) return Effect.succeed(own)
  const [one, other] = [addressOf(own), addressOf(everything)]
  if (one.port === 0 || one.port !== other.port || one.host !== other.host) return Effect.succeed(own)
  if (tls[name] === undefined) return Effect.succeed(false)
  const message = `tls.${name} has no effect: HTTP and gRPC share ${one.host}:${one.port}; set tls.port instead`
  return Effect.fail(new ServeError({ message }))
}
