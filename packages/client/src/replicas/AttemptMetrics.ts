/** Takes what happens to attempts and replicas, for metrics. EffectMetrics.ts counts it. */
import { constVoid } from "effect/Function"
import type { Replica } from "./Replica.ts"

/** How an attempt ended. `superseded`: another attempt of its call was faster. */
export type AttemptOutcome = "success" | "failure" | "cancelled" | "superseded"

/** Why an attempt began. */
export type AttemptReason = "first" | "retry" | "hedge"

export interface AttemptMetrics {
  /** An attempt that has ended. `millis`: its duration. */
  readonly attempted: (replica: Replica, reason: AttemptReason, outcome: AttemptOutcome, millis: number) => void
  /** A replica that receives no calls now. */
  readonly ejected: (replica: Replica) => void
  /** The number of replicas that are listed. */
  readonly listed: (count: number) => void
}

/** Counts nothing: browsers export no metrics, and load no code for them. */
export const none: AttemptMetrics = { attempted: constVoid, ejected: constVoid, listed: constVoid }
