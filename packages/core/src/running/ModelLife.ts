/** The life of a running model: its readiness, its end, and changes while it runs. */
import { Effect, type Scope } from "effect"
import { constVoid } from "effect/Function"
import type { Unrecoverable } from "../error/InferenceError.ts"
import type { InstanceGroup } from "../instance/Instance.ts"
import type { GroupOptions } from "../instance/InstancePlan.ts"
import * as Activity from "./Activity.ts"
import type { SequenceMove } from "../transfer/SequenceMove.ts"
import type { Release } from "./OpenRequests.ts"
import type { PreparedInstances } from "../instance/InstanceSet.ts"

export interface ModelLife {
  /** Whether a request would be executed now. */
  readonly isReady: () => boolean
  /** Why it takes no requests, where `isReady` is false. */
  readonly problem: () => string
  /** Readiness, including the health check of the model's code. Ends in bounded time. */
  readonly probe: Effect.Effect<boolean>
  /** Requests that were accepted and that no instance has yet. */
  readonly pending: () => number
  readonly activity: () => Activity.Activity
  /** Waits for a failure after which the model, and its process, are unusable; undefined if none can happen. */
  readonly unrecoverable: Effect.Effect<Unrecoverable> | undefined
  /** Refuses new sequences. Completes once all others are over; undefined for a model without sequences. */
  readonly endSequences: Effect.Effect<void> | undefined
  /** No new call reaches the model: its live sequences count as reloaded for callers of its next version. */
  readonly retire: () => void
  /** Moves sequences to other servers; undefined for a model without sequences here. */
  readonly sequences: SequenceMove | undefined
  /** Completes once every accepted request has been answered. For a model that receives no further ones. */
  readonly drained: Effect.Effect<void>
  /** Keeps `drained` waiting, for a request of another model that will call this one later. */
  readonly keep: () => Release
  /** Ends its instances, ahead of the scope in which it was built. */
  readonly release: Effect.Effect<void>
  /** Groups of the instances that execute its batches here; empty for a remote model. */
  readonly instanceGroups: () => ReadonlyArray<InstanceGroup>
  /**
   * Replaces the instances by these groups; equal instances remain. New ones are loaded and warmed up now, and take
   * batches once the result is committed. Otherwise they are released with the scope. Undefined for a model without
   * local instances. Not for concurrent use, or for instances with separate layers.
   */
  readonly regroup:
    | ((groups: ReadonlyArray<GroupOptions>) => Effect.Effect<PreparedInstances, unknown, Scope.Scope>)
    | undefined
}

/** A life, with defaults for a model that has no instances here and cannot fail for good. */
export const make = (life: Pick<ModelLife, "isReady" | "pending" | "drained"> & Partial<ModelLife>): ModelLife => ({
  problem: () => "none of its instances is ready",
  probe: Effect.sync(life.isReady),
  activity: () => Activity.none,
  unrecoverable: undefined,
  endSequences: undefined,
  retire: constVoid,
  sequences: undefined,
  keep: () => constVoid,
  release: Effect.void,
  instanceGroups: () => [],
  regroup: undefined,
  ...life,
})
