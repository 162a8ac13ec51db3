/**
 * A server for users: as a layer, or started in the background. Its parts are in ServerLayer.ts, StartedServer.ts,
 * ServerOptions.ts and ListeningServer.ts; OpenServer.ts opens the ports.
 */
export type { DeclaredModel } from "@nereid/core/internal/call/ModelClass"
export type { IndexEntry } from "@nereid/core/internal/lifecycle/ModelStore"
export type { RunningModel } from "@nereid/core/internal/running/RunningModel"
export type { ModelRoutes } from "./http/HttpModelRoutes.ts"
export type { Keepalive } from "./grpc/Keepalive.ts"
export { type Address, Server } from "./ListeningServer.ts"
export type { MetricsOptions } from "./metrics/PrometheusMetrics.ts"
export type { Cors } from "./port/Cors.ts"
export type { Tls } from "./port/Tls.ts"
export { type AnyModel, layer, type ProvideOptions, type ServerLayer } from "./ServerLayer.ts"
export type { Listen, ServerOptions } from "./ServerOptions.ts"
export { start, type Started, type StartOptions } from "./StartedServer.ts"
export { teardown } from "./Teardown.ts"
export type { TraceLevel, TraceSettings } from "./trace/TraceSettings.ts"
