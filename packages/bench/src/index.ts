/**
 * Public API: targets, and closed and open loops of requests. Code inside the repository imports the modules directly.
 */
export * as Arrivals from "@nereid/core/internal/synthetic/Arrivals"
export * as ClosedLoop from "./load/ClosedLoop.ts"
export * as GrpcStream from "./grpc/GrpcStream.ts"
export * as GrpcUnary from "./grpc/GrpcUnary.ts"
export * as HttpInfer from "./http1/HttpInfer.ts"
export * as Lane from "./load/Lane.ts"
export * as Metronome from "./load/Metronome.ts"
export * as OpenLoop from "./load/OpenLoop.ts"
export type { Address } from "./target/Address.ts"
export type { Connection, Target } from "./target/Load.ts"
export type { Measured } from "./load/Round.ts"
