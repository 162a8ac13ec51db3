/** The flags of `nereid serve`, in the groups of its help, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import { Effect } from "effect"
import { CliError, type Command } from "effect/cli"
import * as BrowserFlags from "./BrowserFlags.ts"
import * as CacheFlags from "./CacheFlags.ts"
import * as DeprecatedFlags from "./DeprecatedFlags.ts"
import * as GeneralFlags from "./GeneralFlags.ts"
import * as GrpcFlags from "./GrpcFlags.ts"
import * as HttpFlags from "./HttpFlags.ts"
import * as KeepaliveFlags from "./KeepaliveFlags.ts"
import * as LogFlags from "./LogFlags.ts"
import * as MetricsFlags from "./MetricsFlags.ts"
import type * as OpenTelemetryVariables from "./OpenTelemetryVariables.ts"
import * as PortFlags from "./PortFlags.ts"
import * as RateLimitFlags from "./RateLimitFlags.ts"
import * as RepositoryFlags from "./RepositoryFlags.ts"
import * as TlsFlags from "./TlsFlags.ts"
import * as TraceFlags from "./TraceFlags.ts"
import * as TritonFlags from "./TritonFlags.ts"

export const flags = {
  general: GeneralFlags.flags,
  repository: RepositoryFlags.flags,
  http: HttpFlags.flags,
  grpc: GrpcFlags.flags,
  keepalive: KeepaliveFlags.flags,
  port: PortFlags.flags,
  browsers: BrowserFlags.flags,
  log: LogFlags.flags,
  trace: TraceFlags.flags,
  metrics: MetricsFlags.flags,
  cache: CacheFlags.flags,
  rateLimit: RateLimitFlags.flags,
  ignored: TritonFlags.ignored,
  refused: TritonFlags.refused,
}

export type Values = Command.Command.Config.Infer<typeof flags>

/** Fails if flags contradict each other. `environment` has the variables of OpenTelemetry. */
export const options = Effect.fnUntraced(function* (
  values: Values,
  environment: OpenTelemetryVariables.Environment,
): Effect.fn.Return<ServerOptions, CliError.UserError> {
  const general = yield* Effect.fromResult(GeneralFlags.options(values.general))
  const http = HttpFlags.options(values.http)
  const grpc = GrpcFlags.options(values.grpc)
  const httpTls = yield* TlsFlags.options("http", values.http.tls)
  const grpcTls = yield* TlsFlags.options("grpc", values.grpc.tls)
  const portTls = yield* TlsFlags.options("port", values.port.tls)
  const port = yield* PortFlags.options(values.port)
  if (http.http === false && grpc.grpc === false && port.port === undefined) {
    const cause =
      "--allow-http=false and --allow-grpc=false leave no port for inference: allow one of them, or pass --port"
    return yield* new CliError.UserError({ cause })
  }
  return {
    ...general,
    ...http,
    ...grpc,
    ...port,
    ...KeepaliveFlags.options(values.keepalive),
    ...BrowserFlags.options(values.browsers),
    ...LogFlags.options(values.log),
    ...(yield* TraceFlags.options(values.trace, environment)),
    ...MetricsFlags.options(values.metrics, values.http.address ?? "0.0.0.0"),
    forwardHeaders: { ...http.forwardHeaders, ...grpc.forwardHeaders },
    restrictedApis: { ...http.restrictedApis, ...grpc.restrictedApis },
    tls: { ...(httpTls && { http: httpTls }), ...(grpcTls && { grpc: grpcTls }), ...(portTls && { port: portTls }) },
  }
})

/** Returns warnings about flags that are deprecated or have no effect. */
export const warnings = (values: Values): ReadonlyArray<string> => {
  const ignored = [
    ...values.ignored.flatMap((names) => names.slice(0, 1)),
    ...RepositoryFlags.ignored(values.repository),
  ]
  const withoutEffect = ignored.length === 0 ? [] : [`Flags without effect: ${ignored.join(", ")}`]
  return [...DeprecatedFlags.warnings(values), ...CacheFlags.warnings(values.cache), ...withoutEffect]
}

/** A section of the help: the flags from `first` to the first flag of the next section. */
export interface Group {
  readonly title: string
  readonly first: string
}

export const groups: ReadonlyArray<Group> = [
  { title: "Server", first: "id" },
  { title: "Model repository", first: "model-repository" },
  { title: "HTTP", first: "allow-http" },
  { title: "gRPC", first: "allow-grpc" },
  { title: "gRPC connections", first: "grpc-keepalive-time" },
  { title: "HTTP and gRPC on one port", first: "port" },
  { title: "Browsers", first: "dashboard" },
  { title: "Logging", first: "log-verbose" },
  { title: "Tracing", first: "trace-config" },
  { title: "Metrics", first: "allow-metrics" },
  { title: "Response caches", first: "cache-config" },
  { title: "Rate limiter", first: "rate-limit" },
  { title: "Flags of tritonserver without effect", first: "http-thread-count" },
  { title: "Unsupported flags of tritonserver", first: "reuse-http-port" },
]
