/** Parsed options of a client of several replicas, with their defaults. */
import type { ServerUrl } from "@nereid/core/internal/wire/ServerUrl"
import type { EjectionSettings } from "./Ejection.ts"
import type { HealthSettings } from "./HealthCheck.ts"
import type { HedgeSettings } from "./Hedging.ts"
import type { RetryBudgetSettings } from "./RetryBudget.ts"

/** The replicas: listed, or the addresses of a name. */
export type ReplicaTargets =
  | { readonly _tag: "List"; readonly servers: ReadonlyArray<ServerUrl> }
  /** `interval`: time between two lookups, in milliseconds. */
  | { readonly _tag: "Name"; readonly server: ServerUrl; readonly interval: number }

export interface ReplicaSettings {
  readonly targets: ReplicaTargets
  /** gRPC connections to each replica. */
  readonly connections: number
  /** Whether a request may be executed twice. */
  readonly idempotent: boolean
  /** Attempts of a call, the first one included. */
  readonly attempts: number
  readonly retryBudget: RetryBudgetSettings
  /** Undefined for no hedges. */
  readonly hedge: HedgeSettings | undefined
  /** Undefined for no checks. */
  readonly health: HealthSettings | undefined
  readonly ejection: EjectionSettings
  /** Share of replicas below which ejections are ignored, from 0 to 1. */
  readonly panicThreshold: number
}
