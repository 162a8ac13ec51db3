/**
 * What executes batches: an ONNX session in a worker, or a handler. The scheduler hands it at most `concurrency` batches
 * at once, and none while its status is not `available`.
 */
import type { Effect, Result } from "effect"
import type { Batch } from "./Batch.ts"
import type { InferenceError } from "./Errors.ts"
import type { Response } from "./Inference.ts"

export interface Execution {
  /** One outcome per request of the batch, in its order: requests of one batch fail alone. */
  readonly outcomes: ReadonlyArray<Result.Result<Response, InferenceError>>
  /** Nanoseconds spent on bringing the inputs in. */
  readonly inputDuration: number
  /** Nanoseconds of the run itself, where it may have waited in the instance before; undefined: all other time. */
  readonly inferDuration?: number
  /** Nanoseconds spent on taking the outputs out. */
  readonly outputDuration: number
}

/** `restarting` after a crash, `failed` for good once it has given up. */
export type InstanceStatus = "available" | "restarting" | "failed"

export interface Instance {
  /** `<model>_<group>_<index>`, for the log. */
  readonly name: string
  /** Batches it takes at once: 1, or 2 where the next is prepared while one runs. */
  readonly concurrency: number
  readonly status: () => InstanceStatus
  /** Set by the scheduler: the instance calls it whenever its status has changed. */
  onStatusChange: () => void
  /**
   * A failure is the failure of every request of the batch. Called in an uninterruptible region: what may be interrupted
   * when nobody waits any more says so, with `Effect.interruptible`.
   */
  readonly execute: (batch: Batch) => Effect.Effect<Execution, InferenceError>
}
