/**
 * A model that can be asked: what the registry holds, the front ends call, and a typed service wraps. Where it runs (an
 * ONNX instance, a handler, another server) shows nowhere in it.
 */
import { Effect, Result } from "effect"
import type { Batching } from "./Definition.ts"
import type { InferenceError } from "./Errors.ts"
import type { Cancel, Reply, Request, Response } from "./Inference.ts"
import type { Statistics } from "./Statistics.ts"
import type { Signature } from "./TensorSpec.ts"

export interface RunningModel {
  readonly name: string
  /** A positive integer, in digits. */
  readonly version: string
  /** What runs it, for metadata: `onnxruntime_onnx`, `nereid`. */
  readonly platform: string
  readonly signature: Signature
  /** The most rows of one batch; 0 for a model without a batch dimension. */
  readonly maxBatchSize: number
  /** As declared. */
  readonly batching: Batching
  /** What executes its batches here; 0 for a model that runs elsewhere. */
  readonly instances: number
  readonly statistics: Statistics
  /** Whether a request would be executed now. */
  readonly isReady: () => boolean
  /** Requests accepted and not yet handed to an instance. */
  readonly pending: () => number
  readonly submit: (request: Request, reply: Reply) => Cancel
}

/** Asks, and takes the request back when the calling fiber is interrupted. */
export const infer = (model: RunningModel, request: Request): Effect.Effect<Response, InferenceError> =>
  Effect.callback((resume) => {
    const cancel = model.submit(request, (outcome) =>
      resume(Result.isSuccess(outcome) ? Effect.succeed(outcome.success) : Effect.fail(outcome.failure)),
    )
    return Effect.sync(cancel)
  })
